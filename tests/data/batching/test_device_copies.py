"""The order of copies and computing on two streams, shown with streams that only keep count."""

import contextlib
from collections import Counter

import numpy as np
import pytest
import torch

from data.batching import device_copies
from data.batching.device_copies import DeviceCopies, copy_ahead
from data.batching.loader import Loader
from data.batching.sampler import MicroBatch
from data.features.store_set import open_stores
from tests.data.features.sample_features import ask, write_sample

CPU = torch.device("cpu")
IMAGES = [3, 7, 12, 20, 21, 30, 7, 7, 3, 12, 30, 21, 20]
MICRO_BATCHES = [MicroBatch(np.arange(n, n + 3), 1.0) for n in range(len(IMAGES) - 2)]


class Event:
    """What a stream had done or waited for when it was recorded: {stream: number of works}."""

    def __init__(self, done):
        self.done, self.num_waits = done, 0

    def synchronize(self):
        self.num_waits += 1


class Stream:
    """Works in order, each after all that the stream has waited for."""

    def __init__(self, name):
        self.name, self.done = name, Counter()

    def work(self):
        """What is sure to be done before the work that is queued now."""
        before = Counter(self.done)
        self.done[self.name] += 1
        return before

    def record_event(self):
        return Event(Counter(self.done))

    def wait_event(self, event):
        self.done |= event.done  # the larger number of each

    def wait_stream(self, other):
        self.wait_event(other.record_event())


class StandIn:
    """In place of torch.cuda: one stream to compute, one to copy; tensors stay on the CPU."""

    def __init__(self):
        self.compute, self.copying = Stream("compute"), Stream("copying")
        self.copies = []  # what is done before each

    def Stream(self, device):  # noqa: N802
        return self.copying

    def current_stream(self, device):
        return self.compute

    @contextlib.contextmanager
    def stream(self, stream):
        assert stream is self.copying
        self.copies.append(stream.work())
        yield


@pytest.fixture
def cuda(monkeypatch):
    stand_in = StandIn()
    monkeypatch.setattr(device_copies, "cuda", stand_in)
    return stand_in


@pytest.fixture
def make_loader(tmp_path):
    write_sample(tmp_path / "a.h5")
    return lambda **options: Loader(open_stores([tmp_path / "a.h5"]), ask(IMAGES), 4, **options)


def compute_in_steps(cuda, loader, keep):
    """Draw `keep` batches and compute with them, again and again.

    For each batch, where its features were and what was done before it was computed.
    """
    plain = [batch.features.clone() for batch in loader.iterate(MICRO_BATCHES)]
    places, computed, step = [], [], []
    for batch in DeviceCopies(CPU, keep).iterate(loader.iterate(MICRO_BATCHES)):
        step.append(batch)
        if len(step) == keep or len(computed) + len(step) == len(plain):
            for each in step:
                assert torch.equal(each.features, plain[len(computed)])
                places.append(each.features.data_ptr())
                computed.append(cuda.compute.work())
            step = []
    assert len(computed) == len(cuda.copies) == len(plain)
    return places, computed


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_a_batch_is_computed_after_its_own_copy_and_overwritten_after_that(cuda, make_loader, keep):
    places, computed = compute_in_steps(cuda, make_loader(keep=keep), keep)
    for number, before in enumerate(computed):
        assert before["copying"] > number
    for number, before in enumerate(cuda.copies):
        earlier = number - (keep + 1)  # the batch whose place it takes
        assert before["compute"] > earlier
        assert len(set(places[max(0, earlier + 1) : number + 1])) == min(number, keep) + 1
    assert len(set(places)) < len(places)  # they are reused, but for those that had to grow


def test_the_next_batch_is_copied_while_the_present_one_is_computed(cuda, make_loader):
    """Neither waits for the other: of the copies only its own, and only what came before."""
    _, computed = compute_in_steps(cuda, make_loader(), keep=1)
    last = len(computed) - 1
    assert [before["copying"] for before in computed[:last]] == list(range(1, last + 1))
    assert [before["compute"] for before in cuda.copies[1:]] == list(range(last))


def test_a_host_buffer_is_overwritten_only_after_its_copy(cuda, make_loader):
    loader = make_loader(prefetch=1, keep=1)
    events = []

    def follow(batches):
        for batch in batches:
            yield batch
            events.append(batch.buffer.wait.__self__)  # set when its copy was started

    for batch in DeviceCopies(CPU).iterate(follow(loader.iterate(MICRO_BATCHES))):
        assert batch.buffer is None
    assert [event.done["copying"] for event in events] == list(range(1, len(MICRO_BATCHES) + 1))
    assert [event.num_waits for event in events] == [1] * (len(events) - 2) + [0, 0]


def test_what_is_left_early_is_copied_before_its_memory_is_used_again(cuda, make_loader):
    batches = DeviceCopies(CPU).iterate(make_loader().iterate(MICRO_BATCHES))
    next(batches)
    assert (cuda.compute.done["copying"], len(cuda.copies)) == (1, 2)
    batches.close()
    assert cuda.compute.done["copying"] == 2


@pytest.mark.parametrize("share_images", [True, False])
def test_all_that_a_network_takes_is_copied(cuda, make_loader, share_images):
    loader = make_loader(share_images=share_images)
    plain = [
        (batch.features.clone(), batch.tokens, batch.targets, batch.image_index)
        for batch in loader.iterate(MICRO_BATCHES)
    ]
    copied = DeviceCopies(CPU).iterate(loader.iterate(MICRO_BATCHES))
    for batch, (features, tokens, targets, index) in zip(copied, plain, strict=True):
        assert torch.equal(batch.features, features)
        assert torch.equal(batch.tokens, tokens)
        assert torch.equal(batch.targets, targets)
        if share_images:
            assert torch.equal(batch.image_index, index)
            assert torch.equal(batch.device_index, index)
        else:
            assert batch.device_index is None


def test_no_batches_are_no_copies(cuda):
    assert list(DeviceCopies(CPU).iterate([])) == []


def test_on_a_cpu_the_batches_are_passed_on_as_they_are(make_loader):
    given = list(make_loader(keep=len(MICRO_BATCHES)).iterate(MICRO_BATCHES))
    passed = list(copy_ahead(given, CPU))
    assert all(one is other for one, other in zip(passed, given, strict=True))
