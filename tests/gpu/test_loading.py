"""Features copied to a GPU while it computes: right however late either is, and no waiting."""

import pytest
import torch

from data.batching import device_copies
from data.batching.device_copies import DeviceCopies, copy_ahead
from data.batching.loader import Loader
from data.batching.sampler import TrainingSampler, evaluation_batches
from data.features.store_set import open_stores
from mcan.evaluation.predict import answer_batch, gather_rows, predict
from mcan.runtime.distributed import World
from tests.attention.examples import every_variant
from tests.data.features.sample_features import ask, write_sample
from tests.gpu.device_steps import build, synchronisation_forbidden

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")

IMAGES = [3, 7, 12, 20, 21, 30, 7, 7, 3, 12, 30, 21, 20] * 3
GPU = torch.device("cuda", 0)
MOMENT, SECONDS = 20_000_000, 4_000_000_000  # cycles: about ten milliseconds, and some seconds


@pytest.fixture
def stores(tmp_path):
    write_sample(tmp_path / "a.h5")
    return open_stores([tmp_path / "a.h5"])


def micro_batches(loader):
    batches = TrainingSampler(loader.shapes, 3, seed=0, mixing="all")
    return [each for epoch in range(3) for each in batches.micro_batches(epoch)]


def read_plainly(stores):
    """The tensors of every batch."""
    loader = Loader(stores, ask(IMAGES), num_answers=4, num_threads=0)
    return [
        (batch.features.clone(), batch.tokens.clone(), batch.targets.clone())
        for batch in loader.iterate(micro_batches(loader))
    ]


class LateCopies(DeviceCopies):
    """Copies that the device begins late."""

    def start(self, *arguments):
        with torch.cuda.stream(self.stream):
            torch.cuda._sleep(MOMENT)
        return super().start(*arguments)


@pytest.mark.parametrize("num_threads", [0, 2])
@pytest.mark.parametrize("keep", [1, 2])
@pytest.mark.parametrize("late", ["copies", "computing"])
def test_late_copies_and_late_computing_see_the_right_batches(
    device, stores, num_threads, keep, late, monkeypatch
):
    """A buffer of either side that is overwritten too early, or read too early, would show."""
    is_cuda = device.type == "cuda"
    if late == "copies":
        monkeypatch.setattr(device_copies, "DeviceCopies", LateCopies)
    options = {"num_threads": num_threads, "keep": keep, "pin": is_cuda}
    loader = Loader(stores, ask(IMAGES), num_answers=4, **options)
    seen, step = [], []
    for batch in copy_ahead(loader.iterate(micro_batches(loader)), device, keep):
        assert batch.features.device == device
        step.append(batch)
        if len(step) == keep:
            if is_cuda and late == "computing":
                torch.cuda._sleep(MOMENT)
            seen += [
                [tensor.clone() for tensor in (each.features, each.tokens, each.targets)]
                for each in step
            ]
            step = []
    expected = read_plainly(stores)
    assert len(seen) == len(expected) - len(step)
    for own, other in zip(seen, expected, strict=False):
        for one, two in zip(own, other, strict=True):
            assert torch.equal(one.cpu(), two)


@pytest.mark.cuda
def test_the_next_batch_arrives_while_the_device_computes(stores):
    expected = read_plainly(stores)
    loader = Loader(stores, ask(IMAGES), num_answers=4, pin=True)
    copies = DeviceCopies(GPU)
    batches = copies.iterate(loader.iterate(micro_batches(loader)))
    next(batches)
    torch.cuda._sleep(SECONDS)  # in place of computing
    awake = torch.cuda.Event()
    awake.record()
    with torch.cuda.stream(copies.stream):
        arrived = copies.buffers[1]["features"].cpu()
    still_asleep = not awake.query()
    assert torch.equal(arrived, expected[1][0].flatten())
    assert still_asleep
    batches.close()


@every_variant
@torch.inference_mode()
def test_evaluation_does_not_synchronise_until_all_is_answered(device, stores, variant):
    """After a first pass, which fills the caches for the grid shapes."""
    loader = Loader(
        stores, ask([7, 7, 3, 12]), 4, share_images=True, keep=2, pin=device.type == "cuda"
    )
    todo = evaluation_batches(loader.examples.image_ids, loader.shapes, 2)
    model, world = build(device, variant), World(0, 1, device)
    expected = predict(model, copy_ahead(loader.iterate(todo), device), world, torch.float32)
    with synchronisation_forbidden(device):
        rows = [
            answer_batch(model, batch, world, torch.float32)
            for batch in copy_ahead(loader.iterate(todo), device)
        ]
    assert len(rows) == 3
    ids, answers, *_ = gather_rows(rows, world)
    assert torch.equal(ids, expected.question_ids)
    assert torch.equal(answers, expected.answers)
