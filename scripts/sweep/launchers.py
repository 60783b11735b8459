"""Where the jobs of a sweep run: Hydra's multirun, on this machine or through submitit on Slurm."""

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from configs.schema.groups import Launcher
from scripts.cli.overrides import quote_text
from scripts.cluster.child_process import find_last_message, run_child
from scripts.cluster.slurm import SIGNAL, SRUN_CPUS, list_options, list_queued
from scripts.sweep.plan import Job, Plan

UNSEEN_SECONDS = 5.0  # a job that is being put back into the queue is not in it for a moment


def multirun(plan: Plan, jobs: Sequence[Job]) -> list[str]:
    """The arguments of Python for Hydra's multirun over these jobs."""
    place = quote_text(str(plan.folder))
    return [
        "-m", "scripts.sweep.job", "--multirun", f"sweep={place}",
        f"job={','.join(job.name for job in jobs)}",
        f"hydra.sweep.dir={quote_text(str(plan.folder / 'hydra'))}",
    ]  # fmt: skip


def run_here(plan: Plan, jobs: Sequence[Job]) -> int:
    """One job after another, with Hydra's basic launcher; its exit code."""
    code, _ = run_child(multirun(plan, jobs), plan.folder / "jobs" / "multirun.log")
    return code


def run_on_slurm(plan: Plan, jobs: Sequence[Job], launcher: Launcher, seconds: float) -> None:
    """Submit all jobs as an array, with hydra-submitit-launcher, and wait until none is left."""
    name = f"sweep-{plan.folder.resolve().name}"
    check_slurm(name)
    log = plan.folder / "jobs" / "multirun.log"

    def list_submitted() -> set[Path]:
        return set((plan.folder / "hydra" / ".submitit").glob("*/*_submission.sh"))

    before = list_submitted()
    with open(log, "wb") as file:
        process = subprocess.Popen(
            [sys.executable, *multirun(plan, jobs), *choose_submitit(name, launcher)],
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, "SUBMITIT_PREEMPT_SIGNAL": SIGNAL},
            start_new_session=True,
        )
    try:
        wait(process, name, seconds, lambda: list_submitted() > before)
    finally:
        process.terminate()
        process.wait()
    if not list_submitted() > before:
        raise ValueError(f"nothing was submitted: {find_reason(log)}")


def check_slurm(name: str) -> None:
    """Raise where there is no Slurm, and where jobs of that name are in its queue already."""
    if shutil.which("sbatch") is None:
        raise ValueError("LAUNCHER=slurm needs a machine that has sbatch and squeue")
    if importlib.util.find_spec("submitit") is None:
        raise ValueError("LAUNCHER=slurm needs the extra slurm: pip install -e '.[slurm]'")
    queued = list_queued(name)
    if queued:
        raise ValueError(
            f"jobs {', '.join(queued)} named {name} wait or run already: let them end, or scancel "
            f"them, and start the sweep again"
        )


def choose_submitit(name: str, launcher: Launcher) -> list[str]:
    """The overrides with which Hydra launches jobs through submitit, one node each."""
    options = {**list_options(launcher), "nodes": 1}
    more = ",".join(f"{key}:{quote_text(value)}" for key, value in options.items())
    setup = ",".join(map(quote_text, [SRUN_CPUS, *launcher.setup]))
    return [
        "hydra/launcher=submitit_slurm",
        f"hydra.launcher.name={name}",
        f"hydra.launcher.timeout_min={launcher.minutes}",
        f"hydra.launcher.signal_delay_s={launcher.signal_seconds}",
        "hydra.launcher.max_num_timeout=1000000",  # a job resumes as often as it is stopped
        f"hydra.launcher.setup=[{setup}]",
        f"++hydra.launcher.additional_parameters={{{more}}}",
    ]


def wait(
    process: subprocess.Popen[bytes], name: str, seconds: float, is_submitted: Callable[[], bool]
) -> None:
    """Wait until Slurm has no job of that name, and not only for the moment of putting one back.

    submitit alone would wait for ever for a job that was cancelled on a cluster without accounting,
    and not at all for the others once one was.
    """
    left = None  # the moment since which no job is seen
    while True:
        queued, now = list_queued(name), time.monotonic()
        if not is_submitted():
            if process.poll() is not None and not queued:
                return
        elif queued:
            left = None
        elif left is None:
            left = now
        elif now - left >= UNSEEN_SECONDS:
            return
        time.sleep(seconds)


def find_reason(log: Path) -> str:
    """Why sbatch rejected a job."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    errors = [line.strip() for line in lines if "sbatch: error" in line]
    return errors[-1] if errors else find_last_message(log)
