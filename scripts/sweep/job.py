"""One job of a sweep: train, or go on, then make the table of λ; Hydra's multirun starts these."""

import os
import signal
import sys
from pathlib import Path

from omegaconf import DictConfig

from mcan.stopping import PREEMPTED
from scripts.child import last_words, run_child
from scripts.entry import command
from scripts.slurm_queue import requeue
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


@command("sweep_job")
def main(config: DictConfig) -> None:
    """Do what is left of the job; a failure is its own, and the others go on."""
    plan = load_plan(Path(config.sweep))
    job = plan.find(config.job)
    if is_done(plan, job):
        return
    write_record(plan, job, RUNNING)
    log = log_file(plan, job)
    begin = log.stat().st_size if log.is_file() else 0  # of this attempt
    code = work(plan, job)
    if code == PREEMPTED:
        stop(plan, job)
    elif code:
        killed = f"killed by {signal.Signals(-code).name}" if code < 0 else ""
        write_record(plan, job, FAILED, killed or last_words(log, begin))
    else:
        write_record(plan, job, DONE)


def work(plan: Plan, job: Job) -> int:
    """Train and make the table, each unless it is there; the first exit code that is not 0."""
    run, log = make_run(plan, job), log_file(plan, job)
    if not run.is_finished():
        resume = ["resume=true"] if run.folder.is_dir() else []
        print(f"{job.name}: {'goes on' if resume else 'trains'}", flush=True)
        code = run_child(launch(plan, "scripts.train", [*run.overrides, *resume]), log)
        if code:
            return code
    if not needs_table(run):
        return 0
    print(f"{job.name}: table of λ", flush=True)
    lams = ",".join(map(repr, plan.lams))
    words = [
        f"checkpoint={run.folder}", "grid.count=0", f"grid.extra=[{lams}]",
        f"folds={plan.folds}", *(word for word in job.words if is_shared(word)),
    ]  # fmt: skip
    return run_child(launch(plan, "scripts.select_lambda", words), log)


def launch(plan: Plan, module: str, words: list[str]) -> list[str]:
    """The arguments of Python for a command on the sweep's number of processes."""
    launcher = ["scripts.launch", f"--processes={plan.gpus}"] if plan.gpus > 1 else []
    return ["-m", *launcher, module, *words]


def is_shared(word: str) -> bool:
    """Whether a setting of the training is one of the table, too."""
    return word.split("=")[0].split(".")[0] in ("modules", "runtime")


def stop(plan: Plan, job: Job) -> None:
    """The job was asked to stop: on Slurm it goes back into the queue, else the sweep ends."""
    write_record(plan, job, STOPPED)
    if os.environ.get("SUBMITIT_EXECUTOR") == "slurm" and requeue():
        sys.stdout.flush()
        os._exit(PREEMPTED)  # leaves no result: the job is not over
    sys.exit(PREEMPTED)


if __name__ == "__main__":
    main()
