import gc
import os
import threading
import time

import numpy as np
import pytest
import torch

from data.batching.loader import Loader
from data.batching.sampler import MicroBatch, TrainingSampler, evaluation_batches
from data.features.store_set import open_stores
from tests.data.features.sample_features import SIZES, ask, draw_rows, write_sample

ROWS = draw_rows()
IMAGES = [3, 7, 12, 20, 21, 30, 7, 7, 3, 12, 30, 21, 20]
ONE_BY_ONE = [MicroBatch(np.array([row]), 1.0) for row in range(len(IMAGES))]


@pytest.fixture
def make_loader(tmp_path):
    write_sample(tmp_path / "a.h5")

    def make(reader="mmap", examples=None, **options):
        stores = open_stores([tmp_path / "a.h5"], reader=reader)
        return Loader(stores, examples or ask(IMAGES), num_answers=4, **options)

    return make


def assert_right(batch):
    """Every question of the batch has its own image's rows, zeros after them, and its own texts."""
    features, sizes = batch.features, batch.question_sizes()
    if batch.image_index is not None:
        features = features[batch.image_index]
    for n, image_id in enumerate(batch.image_ids.tolist()):
        height, width = sizes[n]
        assert (height, width) == SIZES[image_id]
        np.testing.assert_array_equal(features[n, : height * width].numpy(), ROWS[image_id])
        assert (features[n, height * width :] == 0).all()
        row = int(batch.question_ids[n]) - 1000
        assert IMAGES[row] == image_id
        assert batch.tokens[n].tolist() == [3 * row, 3 * row + 1, 3 * row + 2]
        if batch.targets is not None:
            assert batch.targets[n].nonzero().tolist() == [[row % 4]]


def list_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("loader")]


def epoch(loader, mixing="none"):
    return TrainingSampler(loader.shapes, 3, seed=0, mixing=mixing).micro_batches(0)


@pytest.mark.parametrize("reader", ["mmap", "pread"])
@pytest.mark.parametrize("num_threads", [0, 1, 3])
@pytest.mark.parametrize("mixing", ["none", "all"])
@pytest.mark.parametrize("read_ahead", [None, True])
def test_every_question_comes_with_its_image(make_loader, reader, num_threads, mixing, read_ahead):
    loader = make_loader(reader, num_threads=num_threads, read_ahead=read_ahead)
    seen = []
    for _ in range(2):  # the second time over buffers full of the first
        for batch in loader.iterate(epoch(loader, mixing)):
            assert_right(batch)
            assert batch.features.dtype == torch.float16
            seen += batch.question_ids.tolist()
    assert sorted(seen) == sorted([*range(1000, 1000 + len(IMAGES))] * 2)


def test_evaluation_reads_each_image_once(make_loader):
    loader = make_loader(share_images=True)
    read = []
    copy = loader.stores.copy_rows
    loader.stores.copy_rows = lambda place, out: (read.append(place), copy(place, out))[1]
    for batch in loader.iterate(evaluation_batches(np.array(IMAGES), loader.shapes, 4)):
        assert len(batch.features) == len(set(batch.image_ids.tolist()))
        assert_right(batch)
    assert sorted(read) == list(range(len(SIZES)))


def test_buffers_have_room_for_a_batchs_images_not_for_its_questions(make_loader):
    loader = make_loader(share_images=True)
    batches = evaluation_batches(np.array(IMAGES), loader.shapes, len(IMAGES), mixing="all")
    (batch,) = loader.iterate(batches)
    most_cells = max(height * width for height, width in SIZES.values())
    assert len(batch.question_ids) == len(IMAGES) > len(SIZES)
    assert {each.buffer.numel() for each in loader.ring} == {len(SIZES) * most_cells * 5}


def test_a_split_without_answers_has_no_targets(make_loader):
    loader = make_loader(examples=ask(IMAGES, has_answers=False))
    for batch in loader.iterate(epoch(loader)):
        assert batch.targets is None
        assert_right(batch)


@pytest.mark.parametrize("num_threads", [0, 2])
@pytest.mark.parametrize("keep", [1, 2, 4])
def test_a_batch_stays_valid_until_keep_more_are_drawn(make_loader, keep, num_threads):
    loader = make_loader(keep=keep, num_threads=num_threads)
    held = []
    for batch in loader.iterate(epoch(loader)):
        time.sleep(0.002)  # the threads have the time to overwrite what they may
        held = [*held, batch][-keep:]
        for earlier in held:
            assert_right(earlier)


@pytest.mark.parametrize("num_threads", [0, 2])
@pytest.mark.parametrize("drawn", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("whole", [True, False])
def test_a_kept_batch_survives_the_start_of_the_next_iteration(
    make_loader, num_threads, drawn, whole
):
    loader = make_loader(keep=3, num_threads=num_threads)
    batches = loader.iterate(ONE_BY_ONE[:drawn] if whole else ONE_BY_ONE)
    held = [next(batches) for _ in range(drawn)][-2:]
    batches.close()
    following = loader.iterate(ONE_BY_ONE[::-1])
    next(following)
    time.sleep(0.01)  # the threads have the time to overwrite what they may
    for earlier in held:
        assert_right(earlier)
    following.close()


def test_buffers_are_reused(make_loader):
    loader = make_loader(prefetch=2, keep=1)
    addresses = {
        batch.features.data_ptr()
        for _ in range(3)
        for batch in loader.iterate(epoch(loader, "all"))
    }
    assert len(addresses) == 3


def test_a_buffer_is_not_overwritten_before_its_user_is_done(make_loader):
    loader = make_loader(prefetch=1, keep=1)
    waited = []
    for number, batch in enumerate(loader.iterate(epoch(loader))):
        first = batch.features.clone()

        def wait(number=number, batch=batch, first=first):
            assert torch.equal(batch.features, first)
            waited.append(number)

        batch.keep_until(wait)
    assert waited == list(range(number - 1))  # the last two buffers were not needed again


def test_loading_goes_on_while_the_consumer_computes(make_loader):
    loader = make_loader(prefetch=2, num_threads=2)
    copy, is_read = loader.stores.copy_rows, threading.Semaphore(0)

    def copy_and_count(place, out):
        copy(place, out)
        is_read.release()

    loader.stores.copy_rows = copy_and_count
    micro_batches = epoch(loader, "all")
    batches = loader.iterate(micro_batches)
    next(batches)
    for _ in range(sum(len(each.rows) for each in micro_batches[:3])):  # the first, and two more
        assert is_read.acquire(timeout=600)
    batches.close()


def test_an_error_in_a_thread_names_the_image_and_ends_the_threads(make_loader, tmp_path):
    loader = make_loader(reader="pread", num_threads=2)
    batches = loader.iterate(ONE_BY_ONE)
    next(batches)
    os.truncate(tmp_path / "a.h5", loader.stores.stores[0].header.data_offset)
    # a thread that has read its rows before the cut, and looks after it, finds a changed file
    with pytest.raises(ValueError, match=r"image \d+ could not .*(truncated|changed) while in use"):
        list(batches)
    assert not list_threads()


@pytest.mark.parametrize("how", ["close", "drop", "raise"])
def test_leaving_early_leaves_no_thread_and_the_loader_usable(make_loader, how):
    loader = make_loader(num_threads=3)
    batches = loader.iterate(epoch(loader))
    next(batches)
    assert list_threads()
    if how == "close":
        batches.close()
    elif how == "drop":
        del batches
        gc.collect()
    else:
        with pytest.raises(KeyError):
            batches.throw(KeyError)
    assert not list_threads()
    assert len(list(loader.iterate(epoch(loader)))) == len(epoch(loader))


def test_a_loader_is_iterated_once_at_a_time(make_loader):
    loader = make_loader()
    first = loader.iterate(epoch(loader))
    next(first)
    with pytest.raises(ValueError, match="being iterated already"):
        next(loader.iterate(epoch(loader)))
    first.close()


def test_a_question_about_a_missing_image_is_rejected_at_the_start(make_loader):
    with pytest.raises(ValueError, match=r"1 images are not in .*a.h5, the first is 99"):
        make_loader(examples=ask([3, 99]))


def test_a_changed_store_is_rejected_at_the_next_epoch(make_loader, tmp_path):
    loader = make_loader()
    list(loader.iterate(epoch(loader)))
    os.utime(tmp_path / "a.h5", ns=(0, 0))
    with pytest.raises(ValueError, match="was changed while in use"):
        next(loader.iterate(epoch(loader)))


def test_no_questions_give_no_batches(make_loader):
    assert list(make_loader().iterate([])) == []


@pytest.mark.cuda
def test_pinned_buffers_reach_the_device_unchanged(make_loader):
    loader = make_loader(pin=True)
    for batch in loader.iterate(epoch(loader)):
        assert batch.features.is_pinned()
        assert batch.tokens.is_pinned()
        moved = batch.features.to("cuda", non_blocking=True)
        event = torch.cuda.Event()
        event.record()
        batch.keep_until(event.synchronize)
        assert torch.equal(moved.cpu(), batch.features)
