"""make sweep: train over lists of settings, read the λ axis off each model, and report.

python -m scripts.sweep attention.k_max=2,3,4,6 seed=1,2
"""

import fcntl
import sys
from pathlib import Path

import hydra
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from data.files import make_parent
from mcan.stopping import PREEMPTED
from scripts.entry import INTERRUPTED, check, fail
from scripts.lambda_table import make_grid
from scripts.overrides import quote_value
from scripts.sweep.launchers import run_here, run_on_slurm
from scripts.sweep.plan import Job, Plan, expand, has_lists, merge, split_words, take_lambda
from scripts.sweep.report import report
from scripts.sweep.states import DONE, is_done
from scripts.train import prepare_data

UNFINISHED = 1  # exit code: some jobs failed or are missing


def main() -> None:
    """Run what is missing, and end with the report."""
    try:
        code = sweep([quote_value(word) for word in sys.argv[1:]])
    except (ValueError, OSError, OmegaConfBaseException) as error:
        fail(error)
    except KeyboardInterrupt:
        print("interrupted: jobs in Slurm's queue go on, others when it is started again")
        code = INTERRUPTED
    sys.exit(code)


def sweep(words: list[str]) -> int:
    """Plan, run and report; the exit code."""
    plan, config = make_plan(words)
    asked = plan.jobs
    make_parent(plan.folder / "jobs" / "x")
    with open(plan.folder / ".sweep.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ValueError(f"{plan.folder} is being swept by another process") from None
        plan = merge(plan)
        plan.save()
        left = [job for job in asked if not is_done(plan, job)]
        print(f"{len(asked)} trainings, {len(asked) - len(left)} of them there already", flush=True)
        code = 0
        if left and config.launcher.name == "slurm":
            run_on_slurm(plan, left, config.launcher, config.sweep.poll_seconds)
        elif left:
            code = run_here(plan, left)
    states = report(plan)
    if code == PREEMPTED:
        return PREEMPTED
    return 0 if all(states[job.name] == DONE for job in asked) else UNFINISHED


def make_plan(words: list[str]) -> tuple[Plan, DictConfig]:
    """What the command line asks for, checked to the last value before anything starts."""
    refuse_flags(words)
    training, own = split_words(words)
    if has_lists(own):
        raise ValueError("only settings of the training can be lists, not those of sweep, launcher")
    if not has_lists(training):
        with hydra.initialize_config_module("configs", version_base="1.3"):
            given = hydra.compose("sweep", [word for word in own if word.startswith("sweep.over")])
        training = [*given.sweep.over, *training]
    training, lams = take_lambda(training)
    jobs = expand(training)
    configs = check_values(jobs, own)
    for data in {OmegaConf.to_yaml(config.data): config for config in configs}.values():
        prepare_data(data)
    config = configs[0]
    folder = Path(config.runs) / config.sweep.name
    lams = lams or make_grid(**config.sweep.grid)
    return Plan(folder, jobs, lams, config.sweep.folds, config.launcher.gpus), config


def refuse_flags(words: list[str]) -> None:
    """Raise for a flag of Hydra's: a sweep of sweeps, or no sweep at all."""
    flags = [word for word in words if word.startswith("-")]
    if flags:
        raise ValueError(f"sweep takes settings key=value, key=value,value, and no flag {flags[0]}")
    for word in words:
        if word.split("=")[0] in ("name", "runs", "resume") and has_lists([word]):
            raise ValueError(f"{word.split('=')[0]} cannot be a list: the sweep names its runs")


def check_values(jobs: list[Job], own: list[str]) -> list[DictConfig]:
    """Check each listed value once, beside the first of all others; the configs of these."""
    seen: set[str] = set()
    configs = []
    for job in jobs:
        new = set(job.words) - seen
        if new:
            seen |= new
            configs.append(check("sweep", [*job.words, *own]))
    return configs


if __name__ == "__main__":
    main()
