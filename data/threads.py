"""Work spread over threads."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def choose_threads(number: int) -> int:
    """The number of threads asked for; 0 is one for each processor."""
    if number < 0:
        raise ValueError(f"num_threads is {number}, expected 0 (one for each processor) or more")
    return number or len(os.sched_getaffinity(0))


def run_threads(
    work: Callable[[Item], Result], items: Iterable[Item], num_threads: int
) -> Iterator[Result]:
    """Yield work(item) as they finish, a few in flight at a time; the first error ends it."""
    running: set[Future[Result]] = set()
    with ThreadPoolExecutor(num_threads) as pool:
        try:
            for item in items:
                running.add(pool.submit(work, item))
                if len(running) >= 4 * num_threads:
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            for future in running:
                yield future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
