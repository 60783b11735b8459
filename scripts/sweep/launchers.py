"""The jobs of a sweep as Hydra's multirun, and that through submitit on Slurm."""

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from configs.schema.groups import Launcher
from scripts.cli.overrides import quote_text
from scripts.cluster.child_process import find_last_message
from scripts.cluster.slurm import SIGNAL, SRUN_CPUS, list_options, list_queued
from scripts.sweep.plan import Job, Plan

SUBMISSION_SECONDS = 0.2  # between two looks at whether all is submitted
UNSEEN_SECONDS = 5.0  # a job that is being put back into the queue is not in it for a moment


def job_arguments(plan: Plan, job: Job) -> list[str]:
    """The arguments of Python for one job."""
    return ["-m", "scripts.sweep.job", f"sweep={quote_text(str(plan.folder))}", f"job={job.name}"]


def multirun(plan: Plan, jobs: Sequence[Job]) -> list[str]:
    """The arguments of Python for Hydra's multirun over these jobs."""
    place = quote_text(str(plan.folder))
    return [
        "-m", "scripts.sweep.job", "--multirun", f"sweep={place}",
        f"job={','.join(job.name for job in jobs)}",
        f"hydra.sweep.dir={quote_text(str(plan.folder / 'hydra'))}",
    ]  # fmt: skip


def run_on_slurm(
    plan: Plan, jobs: Sequence[Job], launcher: Launcher, seconds: float | None
) -> None:
    """Submit all jobs as an array, with hydra-submitit-launcher, and wait until none is left.

    Every so many seconds Slurm is asked; without a number, only the submission is waited for.
    """
    name = name_array(plan)
    check_slurm(name)
    log = plan.folder / "jobs" / "multirun.log"
    before, pickles = list_files(plan, "submission.sh"), list_files(plan, "submitted.pkl")
    with open(log, "wb") as file:
        process = subprocess.Popen(
            submission_command(plan, jobs, launcher),
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, "SUBMITIT_PREEMPT_SIGNAL": SIGNAL},
            start_new_session=True,
        )

    def is_submitted() -> bool:
        return list_files(plan, "submission.sh") > before

    try:
        if seconds is None:  # each job reads its file, the last that submitit puts in place
            while process.poll() is None:
                if len(list_files(plan, "submitted.pkl") - pickles) == len(jobs):
                    break
                time.sleep(SUBMISSION_SECONDS)
        else:
            wait(process, name, seconds, is_submitted)
    finally:
        process.terminate()
        process.wait()
    if not is_submitted():
        raise ValueError(f"nothing was submitted: {find_reason(log)}")


def name_array(plan: Plan) -> str:
    """The name of the jobs in Slurm's queue."""
    return f"sweep-{plan.folder.resolve().name}"


def list_files(plan: Plan, end: str) -> set[Path]:
    """The files that submitit has written so far, of one kind."""
    return set((plan.folder / "hydra" / ".submitit").glob(f"*/*_{end}"))


def check_slurm(name: str) -> None:
    """Raise where there is no Slurm, and where jobs of that name are in its queue already."""
    if shutil.which("sbatch") is None:
        raise ValueError("LAUNCHER=slurm needs a machine that has sbatch and squeue")
    check_submitit()
    queued = list_queued(name)
    if queued:
        raise ValueError(
            f"jobs {', '.join(queued)} named {name} wait or run already: let them end, or scancel "
            f"them, and start the sweep again"
        )


def check_submitit() -> None:
    """Raise without the extra that submits sweeps."""
    if importlib.util.find_spec("submitit") is None:
        raise ValueError(
            "LAUNCHER=slurm needs the extra slurm: .venv/bin/pip install -e '.[slurm]'"
        )


def submission_command(plan: Plan, jobs: Sequence[Job], launcher: Launcher) -> list[str]:
    """The command with which Hydra launches jobs through submitit, one node each."""
    options = submitit_options(plan, launcher)
    more = ",".join(
        f"{key}:{quote_text(value)}" for key, value in options.pop("additional_parameters").items()
    )
    setup = ",".join(map(quote_text, options.pop("setup")))
    return [
        sys.executable,
        *multirun(plan, jobs),
        "hydra/launcher=submitit_slurm",
        *(f"hydra.launcher.{key}={value}" for key, value in options.items()),
        "hydra.launcher.max_num_timeout=1000000",  # a job resumes as often as it is stopped
        f"hydra.launcher.setup=[{setup}]",
        f"++hydra.launcher.additional_parameters={{{more}}}",
    ]


def submitit_options(plan: Plan, launcher: Launcher) -> dict[str, Any]:
    """What submitit is told of the jobs."""
    return {
        "name": name_array(plan),
        "timeout_min": launcher.minutes,
        "signal_delay_s": launcher.signal_seconds,
        "array_parallelism": launcher.array_parallelism,
        "setup": [SRUN_CPUS, *launcher.setup],
        "additional_parameters": {**list_options(launcher), "nodes": 1},
    }


def describe_submission(plan: Plan, jobs: Sequence[Job], launcher: Launcher) -> str:
    """The batch script that submitit would submit, by its own function, and the command for it."""
    check_submitit()
    from submitit.slurm.slurm import _make_sbatch_string

    options = submitit_options(plan, launcher)
    folder = plan.folder.absolute() / "hydra" / ".submitit" / "%j"
    script = _make_sbatch_string(
        command=shlex.join([sys.executable, "-u", "-m", "submitit.core._submit", str(folder)]),
        folder=folder,
        job_name=options.pop("name"),
        time=options.pop("timeout_min"),
        ntasks_per_node=1,
        map_count=len(jobs) if len(jobs) > 1 else None,
        **options,
    )
    return f"{script}\n# the command\n{shlex.join(submission_command(plan, jobs, launcher))}"


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
