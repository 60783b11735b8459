"""Contestants in turns: what disturbs the machine disturbs them alike."""

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
    works: Mapping[str, Work], device: torch.device, rounds: int, title: str
) -> dict[str, list[float]]:
    """Milliseconds of every contestant in every round, after a round that only warms up."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for number in tqdm(range(rounds + 1), desc=title, leave=False):
        for name, work in works.items():
            elapsed = clock(work, device)
            if number > 0:
                times[name].append(elapsed)
    return times
