"""Networks of these tests run on one thread; R-50 with random weights is made once for all."""

import pytest
import torch

from data.backbones.registry import open_backbone
from tests.data.backbones.sample_networks import LAYOUTS, SMALL, draw_state, save_checkpoint


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def r50_state():
    return draw_state(LAYOUTS["r50"])


@pytest.fixture(scope="session")
def r50_file(r50_state, tmp_path_factory):
    return save_checkpoint(tmp_path_factory.mktemp("weights") / "R-50.pth", r50_state)


@pytest.fixture(scope="session")
def r50(r50_file):
    return open_backbone("r50", r50_file, resize=SMALL)
