"""Tests of what only a GPU can show. Each runs on the CPU too where it has a meaning there, so that
its own code is known to work before it meets a GPU."""

import pytest
import torch

CUDA = pytest.param("cuda", marks=pytest.mark.cuda)


@pytest.fixture(params=["cpu", CUDA])
def device(request):
    return torch.device("cuda", 0) if request.param == "cuda" else torch.device("cpu")
