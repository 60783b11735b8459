"""Tests that need a GPU. Each also runs on the CPU where that is meaningful, so that its code
is known to work before it is run on a GPU."""

import pytest
import torch

CUDA = pytest.param("cuda", marks=pytest.mark.cuda)


@pytest.fixture(params=["cpu", CUDA])
def device(request):
    return torch.device("cuda", 0) if request.param == "cuda" else torch.device("cpu")
