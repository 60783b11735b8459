"""How many threads of each process read features."""

import os

from mcan.runtime.settings import Runtime

LEAST, MOST = 2, 8


def choose_loader_threads(runtime: Runtime, num_processes: int | None = None) -> int:
    """The number asked for; without one, this process's share of the processors, 2 to 8.

    Twice that with `pread`, whose threads wait for a network more than they compute. There are as
    many processes on this machine as torchrun says, unless `num_processes` does.
    """
    if runtime.loader_threads is not None:
        return runtime.loader_threads
    if num_processes is None:
        num_processes = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    threads = min(max(LEAST, len(os.sched_getaffinity(0)) // num_processes), MOST)
    return 2 * threads if runtime.reader == "pread" else threads
