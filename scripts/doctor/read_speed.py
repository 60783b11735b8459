"""How fast a store is read: a bounded sample, what was in memory apart from what was not."""

import errno
import mmap
import os
import time
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from shlex import quote

import numpy as np

from data.features.reader import FeatureStore
from scripts.doctor.finding import Finding, ok, problem, warning

SLOW = 2.0  # hours per epoch from which on loading is likely to limit training
SOURCES = {
    False: "disk",
    True: "page cache",
    None: "disk or page cache (the system does not say)",
}


def check_read_speed(
    store: FeatureStore, num_bytes: int, num_threads: int, num_questions: int
) -> Iterator[Finding]:
    """Read a sample of images with training's own reader; report the speed and any damage."""
    places = draw_sample(store, num_bytes)
    cached = [is_cached(store, place) for place in places]
    for state, source in SOURCES.items():
        group = [place for place, known in zip(places, cached, strict=True) if known is state]
        if not group:
            continue
        rate, damaged = read_images(store, group, num_threads)
        if damaged:
            yield problem(
                f"{store.path}: {len(damaged)} of the images that were read do not match their "
                f"checksums, such as {damaged[0]}",
                "copy or make the store again; make verify-features "
                f"STORE={quote(str(store.path))} checks all of it",
            )
        elif source == "disk":
            yield check_rate(store, rate, num_questions)
        else:
            yield ok(f"{store.path} is read from {source} at {rate / 1e6:,.0f} MB/s")


def draw_sample(store: FeatureStore, num_bytes: int) -> list[int]:
    """Positions of random images, as training reads them, about `num_bytes` together."""
    mean = store.header.data_bytes / len(store)
    count = max(1, min(len(store), int(num_bytes / mean)))
    return np.random.default_rng(0).choice(len(store), count, replace=False).tolist()


def is_cached(store: FeatureStore, place: int) -> bool | None:
    """Whether the first bytes of an image are in memory already; None where one cannot know."""
    offset = store.header.data_offset + int(store.offsets[place]) * store.row_bytes
    try:
        # a read that gives up rather than wait for the disk
        return os.preadv(store.descriptor, [bytearray(mmap.PAGESIZE)], offset, os.RWF_NOWAIT) > 0
    except BlockingIOError:
        return False
    except (AttributeError, OSError) as error:
        if getattr(error, "errno", errno.EOPNOTSUPP) in (errno.EOPNOTSUPP, errno.EINVAL):
            return None
        raise


def read_images(
    store: FeatureStore, places: Sequence[int], num_threads: int
) -> tuple[float, list[int]]:
    """Bytes per second of the rows at these positions, and the ids whose checksum differs."""
    rows = [np.empty_like(store.view(place)) for place in places]
    for each in rows:
        each.fill(0)  # its memory is there before the clock starts
    start = time.perf_counter()
    with ThreadPoolExecutor(max(1, num_threads)) as pool:
        list(pool.map(store.copy_rows, places, rows))
    seconds = time.perf_counter() - start
    damaged = [
        int(store.image_ids[place])
        for place, each in zip(places, rows, strict=True)
        if zlib.crc32(each.data) != store.checksums[place]
    ]
    return sum(each.nbytes for each in rows) / max(seconds, 1e-9), damaged


def check_rate(store: FeatureStore, rate: float, num_questions: int) -> Finding:
    """Whether reading every question's image at `rate` bytes per second takes too long."""
    mean = store.header.data_bytes / len(store)
    hours = num_questions * mean / rate / 3600
    text = (
        f"{store.path} is read from disk at {rate / 1e6:,.0f} MB/s, {rate / mean:,.0f} "
        f"questions/s, {hours:.2f} h per epoch"
    )
    advice = "runtime.stage_to=<folder on a local disk>, runtime.reader=pread, more loader_threads"
    return warning(f"{text}: loading will limit training", advice) if hours > SLOW else ok(text)
