"""Features copied to a GPU: the batches are right even if the device copies them late."""

import pytest
import torch

from data.batching.loader import Loader
from data.batching.sampler import TrainingBatches
from data.features.store_set import open_stores
from tests.data.features.sample_features import ask, write_sample

IMAGES = [3, 7, 12, 20, 21, 30, 7, 7, 3, 12, 30, 21, 20] * 3


@pytest.fixture
def stores(tmp_path):
    write_sample(tmp_path / "a.h5")
    return open_stores([tmp_path / "a.h5"])


def micro_batches(loader):
    batches = TrainingBatches(loader.shapes, 3, seed=0, mixing="all")
    return [each for epoch in range(3) for each in batches.micro_batches(epoch)]


@pytest.mark.parametrize("num_threads", [0, 2])
def test_late_copies_of_a_busy_gpu_hold_the_right_batches(device, stores, num_threads):
    """A buffer released too early would be overwritten while the device sleeps before its copy."""
    plain = Loader(stores, ask(IMAGES), num_answers=4, num_threads=0)
    expected = [
        (batch.features.clone(), batch.tokens.clone(), batch.targets.clone())
        for batch in plain.iterate(micro_batches(plain))
    ]
    is_cuda = device.type == "cuda"
    loader = Loader(stores, ask(IMAGES), num_answers=4, num_threads=num_threads, pin=is_cuda)
    copies = []
    for batch in loader.iterate(micro_batches(loader)):
        assert batch.features.is_pinned() == is_cuda
        if is_cuda:
            torch.cuda._sleep(20_000_000)  # cycles: about ten milliseconds
        tensors = (batch.features, batch.tokens, batch.targets)
        copies.append(tuple(tensor.to(device, non_blocking=True) for tensor in tensors))
        if is_cuda:
            done = torch.cuda.Event()
            done.record()
            batch.keep_until(done.synchronize)
        else:
            copies[-1] = tuple(tensor.clone() for tensor in copies[-1])
    assert len(copies) == len(expected)
    for own, other in zip(copies, expected, strict=True):
        for one, two in zip(own, other, strict=True):
            assert torch.equal(one.cpu(), two)
