"""make sweep: train over lists of settings, read the λ axis off each model, and report.

python -m scripts.sweep attention.k_max=2,3,4,6 seed=1,2
"""

import argparse
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass

from configs.schema.groups import Launcher
from configs.schema.training import Sweep
from data.io.atomic_files import make_parent
from data.io.locks import FileLock
from mcan.runtime.stop_request import PREEMPTED
from scripts.cli.command import INTERRUPTED, Command, fail
from scripts.cli.flags import list_flags, starts_nothing
from scripts.cli.overrides import list_combinations
from scripts.cluster.shares import list_gpus, share_gpus
from scripts.sweep.command_line import plan_sweep
from scripts.sweep.launchers import describe_submission, run_on_slurm
from scripts.sweep.local_jobs import describe_commands, run_here
from scripts.sweep.plan import Job, Plan, merge
from scripts.sweep.report import report
from scripts.sweep.states import DONE, is_done

UNFINISHED = 1  # exit code: some jobs failed or are missing


@dataclass(frozen=True, kw_only=True)
class SweepCommand(Command[Sweep]):
    """A command whose settings may be lists, without --multirun, which changes nothing here."""

    run: Callable[[Plan, Sweep], int]  # type: ignore[assignment]  # with an exit code

    def start(self, arguments: argparse.Namespace) -> None:
        """Plan the sweep and run it; of what is only shown, the first of the listed values."""
        if starts_nothing(arguments):
            arguments.overrides = list_combinations(arguments.overrides)[0]
            super().start(arguments)
            return
        try:
            code = self.run(*plan_sweep(arguments.overrides, take_flags(arguments)))
        except OSError as error:
            fail(error)
        except KeyboardInterrupt:
            print("interrupted: jobs in Slurm's queue continue, others when it is started again")
            code = INTERRUPTED
        sys.exit(code)


def take_flags(arguments: argparse.Namespace) -> list[str]:
    """The flags of every job of the sweep; --multirun says what a sweep is anyway."""
    arguments.multirun = False
    flags = list_flags(arguments)
    for flag in flags:
        if not flag.startswith("--config-dir="):
            raise ValueError(f"sweep takes settings, lists of them, and no flag {flag}")
    return flags


def sweep(plan: Plan, settings: Sweep) -> int:
    """Run what is missing, and report; the exit code."""
    jobs, launcher = plan.jobs, settings.launcher
    if launcher.dry_run:
        show(merge(plan), jobs, launcher)
        return 0
    lock = plan.folder / ".sweep.lock"
    make_parent(plan.folder / "jobs" / "x")
    with FileLock(lock, f"{plan.folder} is being swept by another process"):
        plan = merge(plan)
        plan.save()
        left = list_left(plan, jobs)
        code = 0
        if left and launcher.name == "slurm":
            seconds = settings.sweep.poll_seconds
            run_on_slurm(plan, left, launcher, seconds if settings.sweep.wait else None)
        elif left:
            gpus = [] if settings.runtime.device == "cpu" else list_gpus()
            code = run_here(plan, left, share_gpus(settings.sweep.parallel, gpus, plan.gpus))
    if left and not settings.sweep.wait:
        asking = shlex.quote(f"sweep={shlex.quote(str(plan.folder))}")  # a shell reads ARGS again
        print(f"{len(left)} jobs are submitted; make sweep-report ARGS={asking} tells the rest")
        return 0
    states = report(plan)
    if code == PREEMPTED:
        return PREEMPTED
    return 0 if all(states[job.name] == DONE for job in jobs) else UNFINISHED


def list_left(plan: Plan, jobs: list[Job]) -> list[Job]:
    """The jobs that are not done, with a line about them."""
    left = [job for job in jobs if not is_done(plan, job)]
    print(f"{len(jobs)} runs, {len(jobs) - len(left)} of them there already", flush=True)
    return left


def show(plan: Plan, jobs: list[Job], launcher: Launcher) -> None:
    """Print what would be started, and start nothing."""
    left = list_left(plan, jobs)
    if left and launcher.name == "slurm":
        print(describe_submission(plan, left, launcher))
    else:
        print(*describe_commands(plan, left), sep="\n")


main = SweepCommand("sweep", Sweep, run=sweep)

if __name__ == "__main__":
    main()
