"""Work spread over threads."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from threading import Event
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

FILES_AT_A_TIME = 8  # that a thread takes when each is a matter of milliseconds


def choose_threads(number: int) -> int:
    """The number of threads asked for; 0 is one for each processor."""
    if number < 0:
        raise ValueError(f"num_threads is {number}, expected 0 (one for each processor) or more")
    return number or len(os.sched_getaffinity(0))


def run_threads(
    work: Callable[[Item], Result], items: Iterable[Item], num_threads: int, at_a_time: int = 1
) -> Iterator[Result]:
    """Yield work(item) as they finish, a few in flight at a time; the first error ends it.

    A thread takes several items `at_a_time` where handing over each alone would cost too much.
    """
    running: set[Future[list[Result]]] = set()
    remaining, over = iter(items), Event()

    def work_through(part: list[Item]) -> list[Result]:
        return [work(item) for item in part if not over.is_set()]

    with ThreadPoolExecutor(num_threads) as pool:
        try:
            while part := list(islice(remaining, at_a_time)):
                running.add(pool.submit(work_through, part))
                if len(running) >= 4 * num_threads:
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield from future.result()
            for future in running:
                yield from future.result()
        finally:
            over.set()
            pool.shutdown(wait=True, cancel_futures=True)
