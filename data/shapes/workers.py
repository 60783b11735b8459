"""What worker processes do: scenes, images, human maps. No torch, so that they start fast."""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from data.backbones.patch.descriptor import NUM_FEATURES, describe
from data.shapes.balance import draw_asked_scenes
from data.shapes.human_maps import NUM_MAPS, draw_map
from data.shapes.questions import Question
from data.shapes.render import render
from data.shapes.scene import Scene

Run = Callable[[Callable[[Any], Any], Iterable[Any], int], Iterator[Any]]


@contextlib.contextmanager
def start_workers(number: int) -> Iterator[Run]:
    """A `map` that keeps the order, over `number` processes; in this one when fewer than two."""
    if number < 2:
        yield lambda function, jobs, chunk: map(function, jobs)
        return
    pool = ProcessPoolExecutor(
        number, mp_context=multiprocessing.get_context("spawn"), initializer=follow_parent
    )
    try:
        yield lambda function, jobs, chunk: pool.map(function, jobs, chunksize=chunk)
    finally:
        pool.shutdown(cancel_futures=True)  # on an error nothing is left to write


def follow_parent() -> None:
    """Let this worker end when the process that started it is gone, even if it was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def draw_part(job: tuple[tuple[int, ...], int]) -> list[tuple[Scene, list[Question]]]:
    """Draw pairs of scenes and their questions from a seed."""
    seed, num_pairs = job
    return draw_asked_scenes(np.random.default_rng(seed), num_pairs)


def make_picture(job: tuple[Scene, Path]) -> np.ndarray:
    """Render one scene to its file; give the description of its cells, (L, F)."""
    scene, path = job
    picture = render(scene)
    picture.save(path)
    return describe(picture).reshape(-1, NUM_FEATURES)


def make_maps(job: tuple[Scene, tuple[int, ...], Path, tuple[int, int]]) -> None:
    """Draw the maps of one question: <stem>_1.png, <stem>_2.png, …"""
    scene, things, stem, seed = job
    for number in range(1, NUM_MAPS + 1):
        generator = np.random.default_rng([*seed, number])
        draw_map(generator, scene, things).save(f"{stem}_{number}.png")
