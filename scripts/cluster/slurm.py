"""Slurm: a site's settings as options of sbatch, and what a job asks of the queue."""

import os
import shutil
import signal
import subprocess
import sys
from typing import Any

from configs.schema.groups import Launcher

# what a job asks Slurm for ahead of its time limit; SIGTERM may be a scancel, and ends it
REQUEUE_ON = signal.SIGUSR1
SIGNAL = REQUEUE_ON.name.removeprefix("SIG")
# since Slurm 22.05 srun does not take it over from sbatch: all processes could share one core
SRUN_CPUS = 'export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"'


def list_options(launcher: Launcher) -> dict[str, Any]:
    """The options of sbatch that a site and the size of a job ask for; True is a bare flag."""
    chosen: dict[str, Any] = {
        "partition": launcher.partition,
        "account": launcher.account,
        "qos": launcher.qos,
        "time": launcher.minutes,
        "gres": f"{launcher.gres}:{launcher.gpus}" if launcher.gres else None,
        "cpus-per-task": launcher.cpus * launcher.gpus,
        "mem": f"{launcher.memory_gb}G" if launcher.memory_gb else None,
        "nodes": launcher.nodes,
        "ntasks-per-node": 1,
        "signal": f"{SIGNAL}@{launcher.signal_seconds}",
        "requeue": True,
        "open-mode": "append",
        **dict(map(read_option, launcher.more)),
    }
    return {name: value for name, value in chosen.items() if value is not None}


def read_option(word: str) -> tuple[str, Any]:
    """A further option, as it is typed after sbatch: name=value, or a bare name."""
    name, given, value = word.removeprefix("--").partition("=")
    return name, value if given else True


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
    done = ask("scontrol", "requeue", number)
    if done.returncode:  # preemption has put it back already, or the site forbids it
        print(f"job {number} was not put back: {done.stderr.strip()}", file=sys.stderr, flush=True)
    else:
        print(f"job {number} is back in the queue and resumes from the checkpoint", flush=True)


def list_queued(name: str) -> list[str]:
    """The ids of a user's jobs of that name that wait or run."""
    done = ask(
        "squeue", "--noheader", "--array", f"--user={os.getuid()}", f"--name={name}", "--format=%i"
    )
    if done.returncode:
        raise ValueError(f"squeue failed: {' '.join(done.stderr.split())}")
    return done.stdout.split()


def is_queued(number: str) -> bool:
    """Whether a job waits or runs; one that Slurm has forgotten does not."""
    done = ask("squeue", "--noheader", f"--jobs={number}", "--format=%i")
    return done.returncode == 0 and bool(done.stdout.strip())


def ask(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of Slurm's."""
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
