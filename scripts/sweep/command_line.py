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


def plan_sweep(words: list[str], flags: list[str]) -> tuple[Plan, Sweep]:
    """The plan of the sweep, with its data made or found, and the settings of the first job.

    The flags are those of every job: --config-dir.
    """
    check_words(words)
    training, own = split_words(words)
    if has_lists(own):
        raise ValueError("only settings of the training can be lists, not those of sweep, launcher")
    if not has_lists(training):
        over = [word for word in own if word.startswith("sweep.over")]
        (default,) = CONFIGURATION.compose([*flags, *over])
        training = [*default.sweep.over, *training]
    training, lams = take_lambda(training)
    jobs = [replace(job, words=[*flags, *job.words]) for job in expand(training)]
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


def check_words(words: list[str]) -> None:
    """Raise for a list of what the sweep itself chooses."""
    for word in words:
        if word.split("=")[0] in SET_BY_SWEEP and has_lists([word]):
            raise ValueError(f"{word.split('=')[0]} cannot be a list: the sweep names its runs")


def check_values(jobs: list[Job], own: list[str]) -> list[Sweep]:
    """Check each listed value once, beside the first of all others; the settings of these."""
    seen: set[str] = set()
    checked: list[Sweep] = []
    for job in jobs:
        if not seen.issuperset(job.words):
            seen.update(job.words)
            checked += CONFIGURATION.compose([*job.words, *own])
    return checked


def split_words(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The settings of the runs, and those of the sweep itself."""
    own = [word for word in words if re.split(r"[.=]", word.lstrip("+~"))[0] in OWN]
    return [word for word in words if word not in own], own


def has_lists(words: Sequence[str]) -> bool:
    """Whether any word has several values."""
    return any(override.is_sweep_override() for override in parse_words(words))


def take_lambda(words: Sequence[str]) -> tuple[list[str], list[float] | None]:
    """The words without a list of λ, and that list: it needs no further runs."""
    kept, lams = [], None
    for word, override in zip(words, parse_words(words), strict=True):
        if override.get_key_element() == LAMBDA and override.is_sweep_override():
            lams = [read_lambda(value) for value in override.sweep_string_iterator()]
        else:
            kept.append(word)
    return kept, None if lams is None else make_grid(0, 0, 0, lams)


def read_lambda(value: str) -> float:
    """A λ of the table."""
    try:
        return float(value)
    except ValueError:
        raise ValueError(
            f"{LAMBDA} as a list chooses the λ of the table, so each must be a number, not {value}"
        ) from None


def expand(words: Sequence[str]) -> list[Job]:
    """One job for every combination of the listed values; names that jobs share get a part more."""
    keys = [each.get_key_element() for each in parse_words(words) if each.is_sweep_override()]
    jobs = []
    for combination in dict.fromkeys(map(tuple, list_combinations(words))):  # seed=1,1 is one
        values = dict(word.split("=", 1) for word in combination if "=" in word)
        swept = {key.lstrip("+"): values[key] for key in dict.fromkeys(keys)}
        jobs.append(Job(name_job(swept), list(combination), swept))
    names = [job.name for job in jobs]
    return [
        replace(job, name=f"{job.name}-{hashlib.sha1(repr(job.words).encode()).hexdigest()[:6]}")
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
