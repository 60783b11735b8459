"""One job of a sweep: train, or resume, then make the table of λ; Hydra's multirun starts these."""

import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

from configs.schema.training import SweepJob
from mcan.runtime.stop_request import PREEMPTED
from scripts.cli.command import command
from scripts.cli.settings import TRAINING_ALONE
from scripts.cli.terminal import ignore_closed_terminal
from scripts.cluster.child_process import find_last_message, run_child
from scripts.cluster.launch import launch_arguments
from scripts.cluster.slurm import REQUEUE_ON, requeue
from scripts.sweep.plan import Job, Plan, load_plan
from scripts.sweep.states import (
    DONE,
    FAILED,
    RUNNING,
    STOPPED,
    is_done,
    log_file,
    make_run,
    needs_table,
    write_record,
)

PASSED_ON = ("modules=", "runtime.", "runtime=", "--config-dir=")  # from training to the table


@command("sweep_job")
def main(settings: SweepJob) -> None:
    """Do what is left of the job; a failure is recorded, and the other jobs go on."""
    ignore_closed_terminal()  # that of a sweep that is gone: the record is still written
    plan = load_plan(Path(settings.sweep))
    (job,) = (job for job in plan.jobs if job.name == settings.job)
    if is_done(plan, job):
        return
    write_record(plan, job, RUNNING)
    log = log_file(plan, job)
    start = log.stat().st_size if log.is_file() else 0  # of this attempt
    code, received = work(plan, job)
    if code == PREEMPTED:
        stop(plan, job, received)
    elif code:
        killed = f"killed by {signal.Signals(-code).name}" if code < 0 else ""
        write_record(plan, job, FAILED, killed or find_last_message(log, start))
        if received:  # it failed while it stopped: no other job begins
            sys.exit(PREEMPTED)
    else:
        write_record(plan, job, DONE)


def work(plan: Plan, job: Job) -> tuple[int, list[int]]:
    """Train and make the table, unless they are there; the first exit code that is not 0."""
    run, log = make_run(plan, job), log_file(plan, job)
    if not run.is_finished():
        code, received = run_child(run.start_arguments(plan.gpus), log)
        if code:
            return code, received
    if not needs_table(run):
        return 0, []
    print(f"{job.name}: table of λ", flush=True)
    arguments = launch_arguments(
        plan.gpus, "scripts.select_lambda", f"checkpoint={run.folder}", "grid.count=0",
        f"grid.extra=[{','.join(map(repr, plan.lams))}]", f"folds={plan.folds}",
        *(override for override in job.overrides if is_of_any_command(override)),
    )  # fmt: skip
    return run_child(arguments, log)


def is_of_any_command(override: str) -> bool:
    """Whether a setting of a run is one of the command that makes its table of λ too."""
    return override.startswith(PASSED_ON) and override.partition("=")[0] not in TRAINING_ALONE


def stop(plan: Plan, job: Job, received: list[int]) -> NoReturn:
    """The job was asked to stop: on Slurm it may go back into the queue, else the sweep ends."""
    write_record(plan, job, STOPPED)
    if os.environ.get("SUBMITIT_EXECUTOR") == "slurm":
        if REQUEUE_ON in received:
            requeue()
        sys.stdout.flush()
        os._exit(PREEMPTED)  # leaves no result for submitit: the job is not over
    sys.exit(PREEMPTED)


if __name__ == "__main__":
    main()
