"""How fast a store is read: a bounded sample, what was in memory apart from what was not."""

import errno
import mmap
import os
import time
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from data.store import FeatureStore
from scripts.doctor.finding import Finding, good
from scripts.doctor.storage import judge_rate, report_damage


def check_reading(
    store: FeatureStore, num_bytes: int, num_threads: int, num_questions: int
) -> Iterator[Finding]:
    """Read a sample of images with the training's own reader; say how fast, and if it is sound."""
    places = draw_sample(store, num_bytes)
    cached = [is_cached(store, place) for place in places]
    groups = {
        "disk": [p for p, known in zip(places, cached, strict=True) if known is False],
        "page cache": [p for p, known in zip(places, cached, strict=True) if known],
        "disk or page cache (the system does not say)": [
            p for p, known in zip(places, cached, strict=True) if known is None
        ],
    }
    for name, group in groups.items():
        if not group:
            continue
        rate, damaged = read_images(store, group, num_threads)
        if damaged:
            yield report_damage(store, damaged)
        elif name == "disk":
            yield judge_rate(store, rate, num_questions)
        else:
            yield good(f"{store.path} is read from {name} at {rate / 1e6:,.0f} MB/s")


def draw_sample(store: FeatureStore, num_bytes: int) -> list[int]:
    """Positions of images at random, as a training reads them, about so many bytes together."""
    mean = store.header.data_bytes / len(store)
    count = max(1, min(len(store), int(num_bytes / mean)))
    return np.random.default_rng(0).choice(len(store), count, replace=False).tolist()


def is_cached(store: FeatureStore, place: int) -> bool | None:
    """Whether the first bytes of an image are in memory already; None where one cannot know."""
    offset = store.header.data_offset + int(store.offsets[place]) * store.num_features * 2
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
    """Bytes a second of the rows at these positions, and the ids whose checksum differs."""
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
