"""Features that are not in memory: the loader on a store that was dropped from the page cache.

That is how every epoch reads a store larger than memory. It is compared with reads of the same cold
file that do nothing else: from its start to its end, as `dd` does, and in random order in pieces of
about an image's size.
"""

import os
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from tqdm import tqdm

from benchmarks.measurement import Part, Row, as_measurements, ratios
from benchmarks.sample_features import NUM_ANSWERS, ask_questions
from data.batching.loader import Loader
from data.batching.sampler import TrainingSampler
from data.features.reader import READERS
from data.features.store_set import open_stores
from mcan.runtime.loader_threads import LEAST, MOST

PIECE = 2 << 20  # bytes
BATCH_SIZE = 64
SEQUENTIAL, RANDOM = "sequential reads, one thread", "random reads of 2 MB"
ADVISED = f"pread, {MOST} threads"  # for disks that want many requests at a time


def measure(path: Path, num_images: int, rounds: int) -> Part:
    """The row of the advised reader against random reads; no process may have mapped the file."""
    works = list_works(path, num_images)
    speeds: dict[str, list[float]] = {name: [] for name in works}
    order, draw = list(works), random.Random(0)
    for _ in tqdm(range(rounds), desc="cold store", leave=False):
        draw.shuffle(order)
        for name in order:
            drop_from_cache(path)
            start = time.perf_counter()
            num_bytes = works[name]()
            speeds[name].append(num_bytes / (time.perf_counter() - start) / 1e6)
    against = f"{RANDOM} of the same cold file, as many threads"
    share = ratios(speeds[ADVISED], speeds[RANDOM])
    return Part(
        [Row(f"loading a cold store, {ADVISED}", against, "≥ 0.85", share)],
        as_measurements("cold store", speeds, "MB/s"),
    )


def list_works(path: Path, num_images: int) -> dict[str, Callable[[], int]]:
    """The loader with each reader, and plain reads; all give the number of bytes that they read."""
    works: dict[str, Callable[[], int]] = {}
    for reader in READERS:
        for number in (LEAST, MOST):
            name = f"{reader}, {number} threads"
            works[name] = partial(load_images, path, num_images, reader, number)
    works[SEQUENTIAL] = partial(read_pieces, path, 1, is_random=False)
    works[RANDOM] = partial(read_pieces, path, MOST, is_random=True)
    return works


def drop_from_cache(path: Path) -> None:
    """Have the system forget a file's pages; it keeps what is not on disk or is mapped."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def load_images(path: Path, num_images: int, reader: str, num_threads: int) -> int:
    """Every image once, in batches of training, as a store larger than memory is read."""
    image_ids = np.random.default_rng(2).permutation(num_images) + 1
    examples = replace(ask_questions(num_images, per_image=1), image_ids=image_ids)
    stores = open_stores([path], reader)
    loader = Loader(stores, examples, NUM_ANSWERS, num_threads=num_threads, read_ahead=True)
    sampler = TrainingSampler(loader.shapes, BATCH_SIZE, seed=0)
    num_bytes = sum(batch.features.nbytes for batch in loader.iterate(sampler.micro_batches(0)))
    stores.close()
    return num_bytes


def read_pieces(path: Path, num_threads: int, is_random: bool) -> int:
    """The whole file in pieces, in its order or in a random one."""
    starts = list(range(0, path.stat().st_size, PIECE))
    if is_random:
        random.Random(0).shuffle(starts)

    def read(part: int) -> int:
        buffer = bytearray(PIECE)
        return sum(os.preadv(descriptor, [buffer], start) for start in starts[part::num_threads])

    descriptor = os.open(path, os.O_RDONLY)
    try:
        with ThreadPoolExecutor(num_threads) as pool:
            return sum(pool.map(read, range(num_threads)))
    finally:
        os.close(descriptor)
