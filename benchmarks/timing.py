"""Workloads timed in interleaved rounds: what disturbs the machine disturbs them alike."""

import os
import platform
import random
import statistics
import time
from collections.abc import Callable, Mapping

import torch
from tqdm import tqdm

Work = Callable[[], object]


def clock(work: Work, device: torch.device) -> float:
    """Milliseconds of one call."""
    synchronise = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    synchronise()
    start = time.perf_counter()
    work()
    synchronise()
    return 1000 * (time.perf_counter() - start)


def interleave(
    works: Mapping[str, Work],
    device: torch.device,
    rounds: int,
    title: str,
    is_warm: bool = False,
    calls: int = 1,
    clean_up: Work = lambda: None,
) -> dict[str, list[float]]:
    """Milliseconds of every work in every round, each round in another order.

    A round that only warms up goes before, unless all is warm already. Short works should take
    several calls per turn: one more goes first and is not counted, so that nobody pays for what the
    one before left in the caches and in the allocator, and the median of the others is. `clean_up`
    is called after every turn, untimed.
    """
    times: dict[str, list[float]] = {name: [] for name in works}
    order, draw = list(works), random.Random(0)
    for number in tqdm(range(int(is_warm), rounds + 1), desc=title, leave=False):
        draw.shuffle(order)
        for name in order:
            if calls > 1:
                works[name]()
            elapsed = statistics.median(clock(works[name], device) for _ in range(calls))
            clean_up()
            if number > 0:
                times[name].append(elapsed)
    return times


def describe_machine(device: torch.device) -> str:
    """What it ran on, in a few words."""
    if device.type == "cuda":
        return f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{platform.machine()}, {cores} cores, torch {torch.__version__}"
