"""How many threads of each process read features."""

import math
import os

from mcan.runtime.settings import Runtime

LEAST, MOST = 2, 8
SMALL = 64 << 10  # bytes of an image that take less time to copy than to hand to a thread


def choose_loader_threads(
    runtime: Runtime, image_bytes: float = math.inf, num_processes: int | None = None
) -> int:
    """The number asked for; without one, this process's share of the processors, 2 to 8.

    Twice that with `pread`, whose threads wait for a network more than they compute; none for
    small images in memory. There are as many processes on this machine as torchrun says, unless
    `num_processes` does.
    """
    if runtime.loader_threads is not None:
        return runtime.loader_threads
    if image_bytes <= SMALL and runtime.reader == "mmap":
        return 0
    if num_processes is None:
        num_processes = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    threads = min(max(LEAST, len(os.sched_getaffinity(0)) // num_processes), MOST)
    return 2 * threads if runtime.reader == "pread" else threads
