"""What the command line of a sweep asks for: its jobs and its λ, checked before anything starts."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from configs.schema.training import Sweep
from data.vqa.data_folder import DataFolder
from mcan.evaluation.lambda_selection import make_grid
from mcan.training.preparation import prepare_data
from scripts.cli.composition import Configuration
from scripts.cli.overrides import list_combinations, parse_words
from scripts.sweep.plan import Job, Plan

CONFIGURATION = Configuration("sweep", Sweep)
LAMBDA = "attention.lam"
OWN = ("sweep", "launcher")  # groups of the sweep itself, not of its runs
SET_BY_SWEEP = ("name", "runs", "resume")  # settings of a run that the sweep itself chooses


def plan_sweep(overrides: list[str], flags: list[str]) -> tuple[Plan, Sweep]:
    """The plan of the sweep, with its data made or found, and the settings of the first job.

    The flags are those of every job: --config-dir.
    """
    check_own(overrides)
    training, own = split_overrides(overrides)
    if has_lists(own):
        raise ValueError("only settings of the training can be lists, not those of sweep, launcher")
    if not has_lists(training):
        over = [override for override in own if override.startswith("sweep.over")]
        (default,) = CONFIGURATION.compose([*flags, *over])
        training = [*default.sweep.over, *training]
    training, lams = take_lambda(training)
    jobs = [replace(job, overrides=[*flags, *job.overrides]) for job in expand(training)]
    checked = check_values(jobs, own)
    settings = checked[0]
    if not settings.launcher.dry_run:
        for data, each in {settings.data: settings for settings in checked}.items():
            prepare_data(each, DataFolder(data.root, data.layout))
    return Plan(
        folder=Path(settings.runs) / settings.sweep.name,
        jobs=jobs,
        lams=lams or make_grid(**vars(settings.sweep.grid)),
        folds=settings.sweep.folds,
        gpus=settings.launcher.gpus,
    ), settings


def check_own(overrides: list[str]) -> None:
    """Raise for a list of what the sweep itself chooses."""
    for override in overrides:
        if override.split("=")[0] in SET_BY_SWEEP and has_lists([override]):
            raise ValueError(f"{override.split('=')[0]} cannot be a list: the sweep names its runs")


def check_values(jobs: list[Job], own: list[str]) -> list[Sweep]:
    """Check each listed value once, beside the first of all others; the settings of these."""
    seen: set[str] = set()
    checked: list[Sweep] = []
    for job in jobs:
        if not seen.issuperset(job.overrides):
            seen.update(job.overrides)
            checked += CONFIGURATION.compose([*job.overrides, *own])
    return checked


def split_overrides(overrides: Sequence[str]) -> tuple[list[str], list[str]]:
    """The settings of the runs, and those of the sweep itself."""
    own = [override for override in overrides if re.split(r"[.=]", override.lstrip("+~"))[0] in OWN]
    return [override for override in overrides if override not in own], own


def has_lists(overrides: Sequence[str]) -> bool:
    """Whether any override has several values."""
    return any(each.is_sweep_override() for each in parse_words(overrides))


def take_lambda(overrides: Sequence[str]) -> tuple[list[str], list[float] | None]:
    """The overrides without a list of λ, and that list: it needs no further runs."""
    kept, lams = [], None
    for override, parsed in zip(overrides, parse_words(overrides), strict=True):
        if parsed.get_key_element() == LAMBDA and parsed.is_sweep_override():
            lams = [read_lambda(value) for value in parsed.sweep_string_iterator()]
        else:
            kept.append(override)
    return kept, None if lams is None else make_grid(0, 0, 0, lams)


def read_lambda(value: str) -> float:
    """A λ of the table."""
    try:
        return float(value)
    except ValueError:
        raise ValueError(
            f"{LAMBDA} as a list chooses the λ of the table, so each must be a number, not {value}"
        ) from None


def expand(overrides: Sequence[str]) -> list[Job]:
    """One job for every combination of the listed values; names that jobs share get a part more."""
    keys = [each.get_key_element() for each in parse_words(overrides) if each.is_sweep_override()]
    jobs = []
    for combination in dict.fromkeys(map(tuple, list_combinations(overrides))):  # seed=1,1 is one
        values = dict(override.split("=", 1) for override in combination if "=" in override)
        swept = {key.lstrip("+"): values[key] for key in dict.fromkeys(keys)}
        jobs.append(Job(name_job(swept), list(combination), swept))
    names = [job.name for job in jobs]
    return [
        replace(
            job, name=f"{job.name}-{hashlib.sha1(repr(job.overrides).encode()).hexdigest()[:6]}"
        )
        if names.count(job.name) > 1
        else job
        for job in jobs
    ]


def name_job(swept: dict[str, Any]) -> str:
    """A name for a folder: the swept settings, such as k_max_2-seed_1."""
    ends = [key.rpartition(".")[2] for key in swept]
    short = dict(zip(swept, ends if len(set(ends)) == len(ends) else swept, strict=True))
    parts = (f"{short[key]}_{value}" for key, value in swept.items())
    return "-".join(re.sub(r"([^\w.+]|_)+", "_", part).strip("_") for part in parts) or "run"
