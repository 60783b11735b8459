"""A baseline in a process of its own, as its users would run it: it has none of our settings."""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import torch

from benchmarks.timing import Work

_made: list[Work] = []  # in the baseline's process: its work


class BaselineProcess(ProcessPoolExecutor):
    """The work that `make(*arguments)` gives, made there and called there, in turn with ours here.

    The first call waits until it is made.
    """

    def __init__(self, make: Callable[..., Work], *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")
        super().__init__(1, context, initializer=_make, initargs=(make, *arguments))

    def __call__(self) -> None:
        self.submit(_work).result()


def _make(make: Callable[..., Work], *arguments: Any) -> None:
    _made.append(make(*arguments))


def _work() -> None:
    _made[0]()
    if torch.cuda.is_initialized():  # whoever waits for this process is not told of its GPU's work
        torch.cuda.synchronize()
