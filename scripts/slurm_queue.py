"""What a job asks of Slurm's queue."""

import os
import shutil
import subprocess
import sys


def requeue() -> bool:
    """Put this process's own Slurm job back into the queue; whether Slurm did."""
    number = os.environ.get("SLURM_JOB_ID")
    if number is None or shutil.which("scontrol") is None:
        return False
    done = subprocess.run(
        ["scontrol", "requeue", number], capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode:  # preemption has put it back already, or the site forbids it
        print(f"job {number} was not put back: {done.stderr.strip()}", file=sys.stderr, flush=True)
    else:
        print(f"job {number} is back in the queue and goes on from the checkpoint", flush=True)
    return done.returncode == 0


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
