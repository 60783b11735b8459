"""How fast questions come with their features: our loader, the published way, and a bare copy.

The three are measured interleaved, so that what disturbs the machine disturbs them alike, and their
files are removed. All read from the page cache; `cold` then drops the store from it.
"""

import itertools
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

from benchmarks.measurement import Part, Row, as_measurements, ratios
from benchmarks.parts import cold, conversion
from benchmarks.sample_features import (
    NUM_ANSWERS,
    NUM_FEATURES,
    PER_IMAGE,
    ask_questions,
    write_files,
    write_store,
)
from data.batching.examples import Examples
from data.batching.loader import Loader
from data.batching.sampler import MicroBatch, TrainingSampler
from data.features.store_set import StoreSet, open_stores

BATCH_SIZE = 64
MAX_CELLS = 608
NUM_THREADS = 2  # of the loader and of the bare copy; also the number of worker processes


class PublishedFeatures(Dataset[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]):
    """What the published code does for each question: load, transpose, pad."""

    def __init__(self, folder: Path, examples: Examples) -> None:
        self.folder, self.examples = folder, examples

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, row: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        path = self.folder / f"{self.examples.image_ids[row]}.pth"
        features = torch.load(path, weights_only=True)
        rows = features[0].flatten(1).transpose(0, 1)  # (L, F)
        padded = torch.nn.functional.pad(rows, (0, 0, 0, MAX_CELLS - len(rows)))
        targets = self.examples.dense_targets(np.array([row]), NUM_ANSWERS)[0]
        return padded, torch.from_numpy(self.examples.tokens[row]), torch.from_numpy(targets)


def time_published(folder: Path, examples: Examples, num_batches: int) -> float:
    """Questions per second of the published code's batches, once its workers run.

    The workers fetch ahead while the first batch is awaited: that favours them a little.
    """
    dataset = PublishedFeatures(folder, examples)
    batches = iter(DataLoader(dataset, BATCH_SIZE, shuffle=True, num_workers=NUM_THREADS))
    next(batches)
    start = time.perf_counter()
    count = sum(len(features) for features, *_ in itertools.islice(batches, num_batches))
    return count / (time.perf_counter() - start)  # leaving ends the workers


def time_loader(loader: Loader, micro_batches: list[MicroBatch]) -> tuple[float, float]:
    """Questions and gigabytes per second of our loader."""
    start = time.perf_counter()
    questions = num_bytes = 0
    for batch in loader.iterate(micro_batches):
        questions += len(batch.tokens)
        num_bytes += batch.features.nbytes
    seconds = time.perf_counter() - start
    return questions / seconds, num_bytes / seconds / 1e9


def time_copy(
    stores: StoreSet, images: list[np.ndarray], buffer: np.ndarray, num_threads: int = NUM_THREADS
) -> float:
    """Gigabytes per second of copying the same rows by so many threads, no more.

    `images` are the places of each batch; `buffer` (b, 608, F) stands for a batch and is reused.
    """
    store = stores.stores[0]
    batches = [[store.view(place) for place in places.tolist()] for places in images]

    def copy(part: int) -> int:
        num_bytes = 0
        for views in batches:
            for n in range(part, len(views), num_threads):
                view = views[n]
                np.copyto(buffer[n, : len(view)], view)
                num_bytes += view.nbytes
        return num_bytes

    with ThreadPoolExecutor(num_threads) as pool:
        start = time.perf_counter()
        num_bytes = sum(pool.map(copy, range(num_threads)))
        return num_bytes / (time.perf_counter() - start) / 1e9


def measure(num_images: int = 360, rounds: int = 7, num_features: int = NUM_FEATURES) -> Part:
    """Run all in a temporary folder; 360 images are a store of 0.8 GB and 1.5 GB of .pth."""
    with tempfile.TemporaryDirectory(prefix="loading-") as name:
        files, path = Path(name) / "pth", Path(name) / "store.h5"
        write_files(files, num_images, num_features)
        os.sync()  # so that the disk is not busy with these files later
        converting = conversion.measure(files, Path(name), rounds)
        write_store(files, path)
        warm = measure_speed(files, path, num_images, rounds)
        return warm + cold.measure(path, num_images, max(rounds // 3, 1)) + converting


def measure_speed(files: Path, path: Path, num_images: int, rounds: int) -> Part:
    """Time the three ways, interleaved."""
    # four epochs' questions as one: of VQA-v2's batches few are not full, of a small epoch's many
    examples = ask_questions(num_images, 4 * PER_IMAGE)
    stores = open_stores([path])
    loader = Loader(stores, examples, NUM_ANSWERS, num_threads=NUM_THREADS)
    batches = TrainingSampler(loader.shapes, BATCH_SIZE, seed=0)
    buffer = np.zeros((BATCH_SIZE, MAX_CELLS, stores.num_features), dtype=np.float16)
    time_loader(loader, batches.micro_batches(0))  # every page is now mapped, for the copy too
    ours, speed, copied, alone, theirs = [], [], [], [], []
    for number in tqdm(range(rounds), desc="loading", leave=False):
        micro_batches = batches.micro_batches(number)
        images = [loader.places[micro_batch.rows] for micro_batch in micro_batches]
        alone.append(time_copy(stores, images, buffer, 1))
        copied.append(time_copy(stores, images, buffer))
        questions, gigabytes = time_loader(loader, micro_batches)
        ours.append(questions)
        speed.append(gigabytes)
        theirs.append(time_published(files, examples, 4))
    stores.close()
    published = "two workers: torch.load of a float32 file per question, pad, collate"
    bare = "a bare copy from the page cache"
    questions_per_second = {"ours": ours, "published way, two workers": theirs}
    gigabytes_per_second = {"ours": speed, bare: copied, f"{bare}, one thread": alone}
    return Part(
        [
            Row("loading, questions/s", published, "≥ 15", ratios(ours, theirs)),
            Row("loading, bytes/s", bare, "≥ 0.85", ratios(speed, copied)),
        ],
        as_measurements("loading", questions_per_second, "questions/s")
        + as_measurements("loading", gigabytes_per_second, "GB/s"),
    )
