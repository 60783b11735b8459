"""How time and memory grow: exponents fitted over four sizes, where 1 is linear and 0 is flat."""

import multiprocessing
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

import attention
import mcan
from benchmarks.measurement import Part, Row, as_measurements
from benchmarks.parts.heads import draw_cells
from benchmarks.sample_features import ask_questions, write_files, write_store
from benchmarks.timing import Work, interleave
from data.batching.loader import Loader
from data.batching.sampler import TrainingSampler
from data.features.store_set import open_stores
from mcan.runtime.distributed import World
from mcan.training.step import Stepper, make_optimizer

ITERATIONS = 10
CELLS = ((10, 16), (14, 23), (19, 32), (27, 45))  # 160 to 1215 cells
COMPONENTS = (2, 4, 8, 16)
RESTARTS = (2, 4, 8, 16)
IMAGES = (16, 32, 64, 128)
BATCHES = (4, 8, 16, 32)
NUM_STEPS = 3  # the first allocates the optimizer's state, the second is like all others
NUM_FEATURES = 128  # of the stores: memory is to depend on their number of images alone
NETWORK = mcan.Sizes(100, 50, NUM_FEATURES, 32, 64, 2, 4, 64, 128)


def fit_exponent(sizes: Sequence[float], figures: Sequence[float]) -> float:
    """The slope of a line through the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(figures), 1)[0])


def head_work(
    size: tuple[int, int], k_max: int, num_restarts: int, batch: int, device: torch.device
) -> Work:
    """A test-time pass of the multimodal head."""
    inputs = draw_cells(size, batch, device)
    head = attention.build("multimodal", k_max=k_max, num_restarts=num_restarts).eval()
    return torch.no_grad()(lambda: head(*inputs))


def component_work(k: int, batch: int, device: torch.device) -> Work:
    """EM with k components alone: a head also fits all smaller numbers."""
    scores, _, grid = draw_cells(CELLS[2], batch, device)
    weights = scores.softmax(1)
    means = torch.rand(3, k, 2, generator=torch.Generator().manual_seed(0)).to(device)
    return torch.no_grad()(lambda: attention.fit_mixture(weights, grid, means, ITERATIONS))


def measure_head(device: torch.device, rounds: int, batch: int) -> Part:
    """Exponents of the head's time, round by round."""
    cells = [height * width for height, width in CELLS]
    families: Mapping[str, tuple[Sequence[int], list[Work]]] = {
        "cells": (cells, [head_work(size, 4, 3, batch, device) for size in CELLS]),
        "components": (COMPONENTS, [component_work(k, batch, device) for k in COMPONENTS]),
        "restarts": (RESTARTS, [head_work(CELLS[2], 4, r, batch, device) for r in RESTARTS]),
    }
    part = Part()
    for name, (sizes, works) in families.items():
        by_size = {f"{size} {name}": work for size, work in zip(sizes, works, strict=True)}
        times = interleave(by_size, device, rounds, f"growth with {name}", calls=3)
        by_round = zip(*times.values(), strict=True)
        exponents = tuple(fit_exponent(sizes, figures) for figures in by_round)
        against = f"number of {name}, {sizes[0]} to {sizes[-1]}: exponent"
        part.rows.append(Row("time of the head", against, "≤ 1.1", exponents))
        part.details.extend(as_measurements("head", times))
    return part


@contextmanager
def watch_memory() -> Iterator[Callable[[], float]]:
    """The highest number of megabytes that were this process's own (RssAnon) inside."""
    highest, over = 0.0, threading.Event()

    def sample() -> None:
        nonlocal highest
        while not over.is_set():
            status = Path("/proc/self/status").read_text(encoding="ascii")
            line = next(line for line in status.splitlines() if line.startswith("RssAnon"))
            highest = max(highest, int(line.split()[1]) / 1024)
            time.sleep(0.002)

    watcher = threading.Thread(target=sample, daemon=True)
    watcher.start()
    try:
        yield lambda: highest
    finally:
        over.set()
        watcher.join()


def train(path: Path, num_images: int, batch_size: int) -> float:
    """Peak megabytes of a few steps and of reading the epoch, beyond what the process had."""
    torch.set_num_threads(1)
    world = World(0, 1, torch.device("cpu"))
    with watch_memory() as before:
        time.sleep(0.01)
    with watch_memory() as highest:
        examples = ask_questions(num_images, 2.0, NETWORK.num_words, NETWORK.num_answers)
        loader = Loader(open_stores([path]), examples, NETWORK.num_answers)
        model = mcan.MCAN(NETWORK, attention.build("multimodal")).train()
        stepper = Stepper(model, make_optimizer(model, (0.9, 0.98), 1e-9), world)
        # mixed batches all have the largest grid, so that every store fills the buffers
        batches = TrainingSampler(loader.shapes, batch_size, seed=0, mixing="all")
        for step, batch in enumerate(loader.iterate(batches.micro_batches(0))):
            if step < NUM_STEPS:
                stepper.step([batch], step, 1e-4, stop=False)
    return highest() - before()


def train_afresh(*arguments: Any) -> float:
    """`train` in a fork of this process, which has imported all and computed nothing."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(train, arguments)


def measure_memory(images: Sequence[int], batch_sizes: Sequence[int]) -> Part:
    """Exponents of the trainer's peak memory, each figure from a fresh process."""
    with (
        tempfile.TemporaryDirectory(prefix="growth-") as name,
        ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as clean,
    ):
        paths = {}
        for count in images:
            folder, paths[count] = Path(name) / str(count), Path(name) / f"{count}.h5"
            write_files(folder, count, NUM_FEATURES)
            write_store(folder, paths[count])
        most, usual = images[-1], batch_sizes[1]
        settings = [*((count, usual) for count in images), *((most, size) for size in batch_sizes)]
        figures = {  # one setting is in both
            (count, size): clean.submit(train_afresh, paths[count], count, size).result()
            for count, size in dict.fromkeys(settings)
        }
    by_store = [figures[count, usual] for count in images]
    by_batch = [figures[most, size] for size in batch_sizes]
    title = "trainer's peak memory"
    store = f"size of the store, {images[0]} to {images[-1]} images: exponent"
    batch = f"size of the batch, {batch_sizes[0]} to {batch_sizes[-1]}: exponent"
    memory = {
        f"store of {count} images": [each] for count, each in zip(images, by_store, strict=True)
    }
    memory |= {f"batch of {size}": [each] for size, each in zip(batch_sizes, by_batch, strict=True)}
    return Part(
        [
            Row(title, store, "≤ 0.1", (fit_exponent(images, by_store),)),
            Row(title, batch, "≤ 1.1", (fit_exponent(batch_sizes, by_batch),)),
        ],
        as_measurements("own memory", memory, "MB"),
    )


def measure(
    device: torch.device,
    rounds: int = 5,
    batch: int = 32,
    images: Sequence[int] = IMAGES,
    batch_sizes: Sequence[int] = BATCHES,
) -> Part:
    """The exponents of the head's time and of the trainer's memory."""
    return measure_head(device, rounds, batch) + measure_memory(images, batch_sizes)
