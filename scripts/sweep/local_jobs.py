"""The jobs of a sweep on this machine: one after another, or several, each on GPUs of its own."""

import shlex
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from data.io.atomic_files import read_json
from mcan.runtime.stop_request import PREEMPTED
from scripts.cluster.child_process import forward_signals, run_child
from scripts.cluster.launch import launch_arguments
from scripts.cluster.parent import name_parent
from scripts.cluster.shares import share_environment
from scripts.sweep.launchers import job_arguments, multirun
from scripts.sweep.plan import Job, Plan
from scripts.sweep.states import make_run, record_file

POLL_SECONDS = 0.2


def run_here(plan: Plan, jobs: Sequence[Job], shares: Sequence[list[str]]) -> int:
    """As many jobs at a time as there are shares; the exit code."""
    log = plan.folder / "jobs" / "multirun.log"
    if len(shares) == 1:  # one after another, with Hydra's basic launcher
        code, _ = run_child(multirun(plan, jobs), log)
        return code
    with open(log, "ab") as errors:
        return run_several(plan, jobs, shares, errors)


def run_several(
    plan: Plan, jobs: Sequence[Job], shares: Sequence[list[str]], errors: IO[bytes]
) -> int:
    """Start a job whenever a share of the GPUs is free; asked to stop, let those that run save."""
    waiting, free = deque(jobs), deque(shares)
    running: dict[subprocess.Popen[bytes], tuple[Job, list[str]]] = {}
    codes = []

    def forward(number: int) -> None:
        for process in list(running):
            process.send_signal(number)

    with forward_signals(forward) as received:
        while running or (waiting and not received):
            while waiting and free and not received:
                job, share = waiting.popleft(), free.popleft()
                process = start(plan, job, share, len(shares) * plan.gpus, errors)
                running[process] = (job, share)
                if received:  # while it was started
                    process.send_signal(received[-1])
            time.sleep(POLL_SECONDS)
            for process in [each for each in running if each.poll() is not None]:
                job, share = running.pop(process)
                free.append(share)
                codes.append(process.returncode)
                print(f"{job.name}: {read_state(record_file(plan, job))}", flush=True)
    return PREEMPTED if received or PREEMPTED in codes else 0


def start(
    plan: Plan, job: Job, share: list[str], num_processes: int, errors: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start a job on its GPUs; all jobs together have `num_processes`. Its log has its output."""
    where = f" on GPU {','.join(share)}" if share else ""
    print(f"{job.name}: starts{where}", flush=True)
    return subprocess.Popen(
        [sys.executable, *job_arguments(plan, job)],
        stdout=subprocess.DEVNULL,
        stderr=errors,
        env=name_parent(share_environment(share, num_processes)),
        start_new_session=True,  # Ctrl-C reaches it once, from here
    )


def read_state(record: Path) -> str:
    """How a job ended, as it recorded it."""
    return str(read_json(record)["state"]) if record.is_file() else "failed"


def describe_commands(plan: Plan, jobs: Sequence[Job]) -> Iterator[str]:
    """The command of every training run."""
    for job in jobs:
        arguments = launch_arguments(plan.gpus, "scripts.train", *make_run(plan, job).overrides)
        yield shlex.join([sys.executable, *arguments])
