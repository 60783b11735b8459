"""How fast questions come with their features: our loader, the published way, and a bare copy.

`python -m scripts.bench.loading` measures the three in turns, so that what disturbs the machine
disturbs them alike, and removes its files. All read from the page cache.
"""

import itertools
import multiprocessing
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from data.batches import Piece, TrainingBatches
from data.examples import Examples
from data.loader import Loader
from data.store_set import StoreSet, open_stores
from scripts.bench.measurement import Measurement, divide
from scripts.bench.sample_features import (
    NUM_ANSWERS,
    NUM_FEATURES,
    ask_questions,
    write_files,
    write_store,
)

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
    """Give questions per second of the published code's batches, once its workers run.

    The workers fetch ahead while the first batch is awaited: that favours them a little.
    """
    dataset = PublishedFeatures(folder, examples)
    batches = iter(DataLoader(dataset, BATCH_SIZE, shuffle=True, num_workers=NUM_THREADS))
    next(batches)
    start = time.perf_counter()
    count = sum(len(features) for features, *_ in itertools.islice(batches, num_batches))
    return count / (time.perf_counter() - start)  # leaving ends the workers


def time_loader(loader: Loader, pieces: list[Piece]) -> tuple[float, float]:
    """Give questions and gigabytes per second of our loader."""
    start = time.perf_counter()
    questions = num_bytes = 0
    for batch in loader.iterate(pieces):
        questions += len(batch.tokens)
        num_bytes += batch.features.nbytes
    seconds = time.perf_counter() - start
    return questions / seconds, num_bytes / seconds / 1e9


def time_copy(stores: StoreSet, images: list[np.ndarray], buffer: np.ndarray) -> float:
    """Give gigabytes per second of copying the same rows by the same number of threads, no more.

    `images` are the places of each batch; `buffer` (b, 608, F) stands for a batch and is reused.
    """
    store = stores.stores[0]
    batches = [[store.view(place) for place in places.tolist()] for places in images]

    def copy(part: int) -> int:
        num_bytes = 0
        for views in batches:
            for n in range(part, len(views), NUM_THREADS):
                view = views[n]
                np.copyto(buffer[n, : len(view)], view)
                num_bytes += view.nbytes
        return num_bytes

    with ThreadPoolExecutor(NUM_THREADS) as pool:
        start = time.perf_counter()
        num_bytes = sum(pool.map(copy, range(NUM_THREADS)))
        return num_bytes / (time.perf_counter() - start) / 1e9


def read_epoch(path: Path, num_images: int) -> float:
    """Read one epoch; give the megabytes that are this process's own (RssAnon)."""
    examples = ask_questions(num_images)
    loader = Loader(open_stores([path]), examples, NUM_ANSWERS, num_threads=NUM_THREADS)
    # mixed batches all have the largest grid, so that both stores fill the buffers to the brim
    batches = TrainingBatches(loader.shapes, BATCH_SIZE, seed=0, mixing="all")
    for _ in loader.iterate(batches.pieces(0)):
        pass
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("RssAnon"))
    return int(line.split()[1]) / 1024


def measure_memory(path: Path, num_images: int) -> Measurement:
    """Read one epoch in a fresh process and give its own memory."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        megabytes = pool.apply(read_epoch, (path, num_images))
    name = f"own memory, store of {path.stat().st_size / 1e9:.1f} GB"
    return Measurement(name, (megabytes,), "MB")


def measure(
    num_images: int = 1200, num_rounds: int = 5, num_features: int = NUM_FEATURES
) -> list[Measurement]:
    """Run all in a temporary folder; 1200 images are a store of 2.4 GB and 4.9 GB of .pth."""
    with tempfile.TemporaryDirectory(prefix="loading-") as name:
        files, path = Path(name) / "pth", Path(name) / "store.h5"
        small_files, small = Path(name) / "small", Path(name) / "small.h5"
        write_files(small_files, num_images // 8, num_features)
        write_store(small_files, small)
        write_files(files, num_images, num_features)
        start = time.perf_counter()
        write_store(files, path)
        seconds = time.perf_counter() - start
        return [
            *measure_speed(files, path, num_images, num_rounds),
            Measurement("conversion from .pth files", (num_images / seconds,), "images/s"),
            measure_memory(small, num_images // 8),
            measure_memory(path, num_images),
        ]


def measure_speed(files: Path, path: Path, num_images: int, num_rounds: int) -> list[Measurement]:
    """Time the three ways in turns."""
    examples = ask_questions(num_images)
    stores = open_stores([path])
    loader = Loader(stores, examples, NUM_ANSWERS, num_threads=NUM_THREADS)
    batches = TrainingBatches(loader.shapes, BATCH_SIZE, seed=0)
    buffer = np.zeros((BATCH_SIZE, MAX_CELLS, stores.num_features), dtype=np.float16)
    time_loader(loader, batches.pieces(0))  # every page is now mapped, for the copy too
    ours, speed, copied, theirs = [], [], [], []
    for number in range(num_rounds):
        pieces = batches.pieces(number)
        images = [loader.places[piece.rows] for piece in pieces]
        copied.append(time_copy(stores, images, buffer))
        questions, gigabytes = time_loader(loader, pieces)
        ours.append(questions)
        speed.append(gigabytes)
        theirs.append(time_published(files, examples, 8))
    rows = {
        "loader": Measurement("loader", tuple(ours), "questions/s"),
        "published": Measurement("published way, two workers", tuple(theirs), "questions/s"),
        "speed": Measurement("loader", tuple(speed), "GB/s"),
        "copy": Measurement("bare copy from the page cache", tuple(copied), "GB/s"),
    }
    return [
        *rows.values(),
        divide("loader against the published way", rows["loader"], rows["published"]),
        divide("loader against a bare copy", rows["speed"], rows["copy"]),
    ]


if __name__ == "__main__":
    for row in measure():
        print(row.line())
