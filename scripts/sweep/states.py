"""How far each job of a sweep is: its record, its run and its table."""

import os
import shutil
import socket
import time
from pathlib import Path
from typing import Any

from data.io.atomic_files import read_json, write_json
from data.io.locks import is_locked
from mcan.head_options import selects_components
from scripts.cluster.planned_run import PlannedRun
from scripts.cluster.slurm import is_queued, own_job
from scripts.sweep.plan import Job, Plan

DONE, FAILED, RUNNING, STOPPED, MISSING = "done", "failed", "running", "interrupted", "missing"


def record_file(plan: Plan, job: Job) -> Path:
    return plan.folder / "jobs" / f"{job.name}.json"


def log_file(plan: Plan, job: Job) -> Path:
    return plan.folder / "jobs" / f"{job.name}.log"


def write_record(plan: Plan, job: Job, state: str, reason: str = "") -> None:
    """Record how far a job is."""
    number = own_job() if "SUBMITIT_EXECUTOR" in os.environ else None
    record = {"state": state, "reason": reason, "host": socket.gethostname(), "slurm_job": number}
    write_json(record_file(plan, job), {**record, "time": time.time()})


def make_run(plan: Plan, job: Job) -> PlannedRun:
    """The run of a job, in a folder of the sweep."""
    overrides = ["figures=0", *job.overrides, f"runs={plan.folder}", f"name={job.name}"]
    return PlannedRun(plan.folder / job.name, tuple(overrides))


def read_table(plan: Plan, job: Job) -> dict[str, Any] | None:
    """The job's table of λ, if it is there with all λ of the plan."""
    path = plan.folder / job.name / "lambda" / "table.json"
    if not path.is_file():
        return None
    table: dict[str, Any] = read_json(path)
    has_all = set(plan.lams) <= {row["lam"] for row in table["rows"]}
    is_later = path.stat().st_mtime >= (plan.folder / job.name / "best.pt").stat().st_mtime
    return table if has_all and is_later and table["folds"] == plan.folds else None


def needs_table(run: PlannedRun) -> bool:
    """Whether the head of a run has a λ to select."""
    return selects_components(run.config()["attention"])


def is_done(plan: Plan, job: Job) -> bool:
    """Whether there is nothing left to do."""
    run = make_run(plan, job)
    return run.is_finished() and (not needs_table(run) or read_table(plan, job) is not None)


def find_state(plan: Plan, job: Job) -> tuple[str, str]:
    """How far a job is, and why."""
    if is_done(plan, job):
        return DONE, ""
    if not record_file(plan, job).is_file():
        return MISSING, "not started yet"
    record = read_json(record_file(plan, job))
    if record["state"] == FAILED:
        return FAILED, f"{record['reason']} (see {log_file(plan, job)})"
    if record["state"] in (RUNNING, STOPPED) and is_alive(plan, job, record["slurm_job"]):
        is_running = record["state"] == RUNNING
        return RUNNING, f"on {record['host']}" if is_running else "waits in the queue"
    return STOPPED, "resumes when the sweep is started again"


def is_alive(plan: Plan, job: Job, slurm_job: str | None) -> bool:
    """Whether it runs or waits: Slurm says so, or the sweep or the run is locked."""
    if slurm_job is not None and shutil.which("squeue"):
        return is_queued(slurm_job)
    return is_locked(plan.folder / ".sweep.lock") or is_locked(plan.folder / job.name / ".lock")
