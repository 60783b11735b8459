"""What each of several jobs on this machine gets: GPUs of its own, a share of the processors."""

import os
from collections.abc import Sequence

VISIBLE = "CUDA_VISIBLE_DEVICES"


def list_gpus() -> list[str]:
    """The GPUs that this process sees, as CUDA_VISIBLE_DEVICES names them."""
    import torch  # here: a job of a sweep has its share already

    count = torch.cuda.device_count()
    named = os.environ.get(VISIBLE)
    return named.split(",")[:count] if named else list(map(str, range(count)))


def share_gpus(parallel: int | str, gpus: Sequence[str], per_job: int) -> list[list[str]]:
    """The GPUs of each of the jobs that run at a time; an empty share is one that may use all.

    "auto" is as many jobs as there are GPUs for. A number is taken as it is: too many jobs share.
    """
    num_jobs = max(1, len(gpus) // per_job) if parallel == "auto" else int(parallel)
    if num_jobs == 1 or not gpus:
        return [[] for _ in range(num_jobs)]
    turns = [gpus[number % len(gpus)] for number in range(num_jobs * per_job)]
    return [
        list(dict.fromkeys(turns[first : first + per_job]))
        for first in range(0, len(turns), per_job)
    ]


def share_environment(share: Sequence[str], num_processes: int) -> dict[str, str]:
    """The variables of a job with these GPUs, where all jobs together have so many processes."""
    num_threads = max(1, len(os.sched_getaffinity(0)) // num_processes)
    visible = {VISIBLE: ",".join(share)} if share else {}
    return {"OMP_NUM_THREADS": str(num_threads), **os.environ, **visible}
