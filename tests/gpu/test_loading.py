"""Features on their way to a GPU: whole batches, however late the device fetches them."""

import pytest
import torch

from data.batches import TrainingBatches
from data.loader import Loader
from data.store_set import open_stores
from tests.data.sample_features import ask, write_sample

IMAGES = [3, 7, 12, 20, 21, 30, 7, 7, 3, 12, 30, 21, 20] * 3


@pytest.fixture
def stores(tmp_path):
    write_sample(tmp_path / "a.h5")
    return open_stores([tmp_path / "a.h5"])


def pieces(loader):
    batches = TrainingBatches(loader.shapes, 3, seed=0, mixing="all")
    return [piece for epoch in range(3) for piece in batches.pieces(epoch)]


@pytest.mark.parametrize("num_threads", [0, 2])
def test_copies_that_a_busy_gpu_makes_late_hold_the_right_batches(device, stores, num_threads):
    """A buffer that is not held would be overwritten while the device sleeps before its copy."""
    plain = Loader(stores, ask(IMAGES), num_answers=4, num_threads=0)
    expected = [
        (batch.features.clone(), batch.tokens.clone(), batch.targets.clone())
        for batch in plain.iterate(pieces(plain))
    ]
    is_cuda = device.type == "cuda"
    loader = Loader(stores, ask(IMAGES), num_answers=4, num_threads=num_threads, pin=is_cuda)
    copies = []
    for batch in loader.iterate(pieces(loader)):
        assert batch.features.is_pinned() == is_cuda
        if is_cuda:
            torch.cuda._sleep(20_000_000)  # cycles: about ten milliseconds
        tensors = (batch.features, batch.tokens, batch.targets)
        copies.append(tuple(tensor.to(device, non_blocking=True) for tensor in tensors))
        if is_cuda:
            done = torch.cuda.Event()
            done.record()
            batch.hold(done.synchronize)
        else:
            copies[-1] = tuple(tensor.clone() for tensor in copies[-1])
    assert len(copies) == len(expected)
    for own, other in zip(copies, expected, strict=True):
        for one, two in zip(own, other, strict=True):
            assert torch.equal(one.cpu(), two)
