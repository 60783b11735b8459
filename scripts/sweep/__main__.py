"""make sweep: train over lists of settings, read the λ axis off each model, and report.

python -m scripts.sweep attention.k_max=2,3,4,6 seed=1,2
"""

import sys

from data.io.atomic_files import make_parent
from data.io.locks import FileLock
from mcan.runtime.stop_request import PREEMPTED
from scripts.cli.command import INTERRUPTED, fail, read_words
from scripts.sweep.command_line import plan_sweep
from scripts.sweep.launchers import run_here, run_on_slurm
from scripts.sweep.plan import merge
from scripts.sweep.report import report
from scripts.sweep.states import DONE, is_done

UNFINISHED = 1  # exit code: some jobs failed or are missing


def main() -> None:
    """Run what is missing, and end with the report."""
    try:
        code = sweep(read_words(sys.argv[1:]))
    except (ValueError, OSError) as error:
        fail(error)
    except KeyboardInterrupt:
        print("interrupted: jobs in Slurm's queue continue, others when it is started again")
        code = INTERRUPTED
    sys.exit(code)


def sweep(words: list[str]) -> int:
    """Plan, run and report; the exit code."""
    plan, settings = plan_sweep(words)
    jobs = plan.jobs
    lock = plan.folder / ".sweep.lock"
    make_parent(plan.folder / "jobs" / "x")
    with FileLock(lock, f"{plan.folder} is being swept by another process"):
        plan = merge(plan)
        plan.save()
        left = [job for job in jobs if not is_done(plan, job)]
        print(f"{len(jobs)} runs, {len(jobs) - len(left)} of them there already", flush=True)
        code = 0
        if left and settings.launcher.name == "slurm":
            run_on_slurm(plan, left, settings.launcher, settings.sweep.poll_seconds)
        elif left:
            code = run_here(plan, left)
    states = report(plan)
    if code == PREEMPTED:
        return PREEMPTED
    return 0 if all(states[job.name] == DONE for job in jobs) else UNFINISHED


if __name__ == "__main__":
    main()
