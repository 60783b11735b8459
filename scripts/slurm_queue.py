"""What a job asks of Slurm's queue."""

import os
import shutil
import signal
import subprocess
import sys

# what a job asks Slurm for ahead of its time limit; SIGTERM may be a scancel, and ends it
REQUEUE_ON = signal.SIGUSR1


def own_job() -> str | None:
    """The id of the Slurm job that this process belongs to, such as 12 or, in an array, 12_3.

    SLURM_JOB_ID will not do: that of one job of an array is the id of the whole array.
    """
    array = os.environ.get("SLURM_ARRAY_JOB_ID")
    return (
        f"{array}_{os.environ['SLURM_ARRAY_TASK_ID']}" if array else os.environ.get("SLURM_JOB_ID")
    )


def requeue() -> None:
    """Put this process's own Slurm job back into the queue."""
    number = own_job()
    if number is None or shutil.which("scontrol") is None:
        return
    done = subprocess.run(
        ["scontrol", "requeue", number], capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode:  # preemption has put it back already, or the site forbids it
        print(f"job {number} was not put back: {done.stderr.strip()}", file=sys.stderr, flush=True)
    else:
        print(f"job {number} is back in the queue and goes on from the checkpoint", flush=True)


def list_queued(name: str) -> list[str]:
    """The ids of a user's jobs of that name that wait or run."""
    done = subprocess.run(
        ["squeue", "--noheader", "--array", f"--user={os.getuid()}", f"--name={name}",
         "--format=%i"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if done.returncode:
        raise ValueError(f"squeue failed: {' '.join(done.stderr.split())}")
    return done.stdout.split()


def is_queued(number: str) -> bool:
    """Whether a job waits or runs; one that Slurm has forgotten does not."""
    done = subprocess.run(
        ["squeue", "--noheader", f"--jobs={number}", "--format=%i"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    return done.returncode == 0 and bool(done.stdout.strip())
