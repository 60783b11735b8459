"""What a sweep is made of: its jobs and its λ, read off the command line and kept in a file."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException

from data.files import read_json, write_json
from scripts.lambda_table import make_grid

LAMBDA = "attention.lam"
OWN = ("sweep", "launcher")  # groups of the sweep itself, not of its trainings
IMMATERIAL = ("runtime",)  # may differ from call to call: the results do not depend on it


@dataclass(frozen=True)
class Job:
    """One training."""

    name: str  # of its folder
    words: list[str]  # the settings of its training
    swept: dict[str, str]  # those of them that make it differ from the others

    @property
    def material(self) -> set[str]:
        return {word for word in self.words if word.split(".")[0] not in IMMATERIAL}


@dataclass(frozen=True)
class Plan:
    """All jobs of a sweep, and how their tables of λ are made."""

    folder: Path
    jobs: list[Job]
    lams: list[float]
    folds: int
    gpus: int

    def find(self, name: str) -> Job:
        """The job of that name."""
        return next(job for job in self.jobs if job.name == name)

    def save(self) -> None:
        """Write it where a report finds it."""
        content = {**asdict(self), "folder": str(self.folder)}
        write_json(self.folder / "sweep.json", content, indent=1)


def load_plan(folder: Path) -> Plan:
    """The plan of a sweep that was begun."""
    if not (folder / "sweep.json").is_file():
        raise ValueError(f"there is no sweep in {folder}: it holds no sweep.json")
    content = read_json(folder / "sweep.json")
    jobs = [Job(**job) for job in content.pop("jobs")]
    return Plan(**{**content, "folder": folder, "jobs": jobs})


def merge(plan: Plan) -> Plan:
    """The plan with the jobs that the sweep had before; a job never changes its settings."""
    if not (plan.folder / "sweep.json").is_file():
        return plan
    jobs = {job.name: job for job in load_plan(plan.folder).jobs}
    for job in plan.jobs:
        before = jobs.get(job.name, job)
        if before.material != job.material:
            other = " ".join(sorted(before.material ^ job.material))
            raise ValueError(
                f"{plan.folder} has a job {job.name} with other settings (compare {other}); give "
                f"this sweep another name: sweep.name=…"
            )
        jobs[job.name] = job
    return replace(plan, jobs=list(jobs.values()))


def split_words(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words of the trainings, and those of the sweep itself."""
    own = [word for word in words if re.split(r"[.=]", word.lstrip("+~"))[0] in OWN]
    return [word for word in words if word not in own], own


def parse(words: Sequence[str]) -> list[Override]:
    """The words as Hydra reads them."""
    try:
        return OverridesParser.create().parse_overrides(list(words))
    except HydraException as error:
        raise ValueError(str(error)) from None


def has_lists(words: Sequence[str]) -> bool:
    """Whether any word sweeps."""
    return any(override.is_sweep_override() for override in parse(words))


def take_lambda(words: Sequence[str]) -> tuple[list[str], list[float] | None]:
    """The words without a list of λ, and that list: it needs no trainings."""
    kept, lams = [], None
    for word, override in zip(words, parse(words), strict=True):
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
    """One job for every combination of the listed values, as Hydra's own sweeper makes them."""
    overrides = parse(words)
    keys = [each.get_key_element() for each in overrides if each.is_sweep_override()]
    (combinations,) = BasicSweeper.split_arguments(overrides, max_batch_size=None)
    jobs = []
    for combination in dict.fromkeys(map(tuple, combinations)):  # seed=1,1 is one
        values = dict(word.split("=", 1) for word in combination)
        swept = {key.lstrip("+"): values[key] for key in dict.fromkeys(keys)}
        jobs.append(Job(name_job(swept), list(combination), swept))
    return tell_apart(jobs)


def name_job(swept: dict[str, Any]) -> str:
    """A name for a folder: the swept settings, such as k_max_2-seed_1."""
    ends = [key.rpartition(".")[2] for key in swept]
    short = dict(zip(swept, ends if len(set(ends)) == len(ends) else swept, strict=True))
    parts = (f"{short[key]}_{value}" for key, value in swept.items())
    return "-".join(re.sub(r"([^\w.+]|_)+", "_", part).strip("_") for part in parts) or "run"


def tell_apart(jobs: list[Job]) -> list[Job]:
    """Give jobs whose values look alike as names a part that differs."""
    names = [job.name for job in jobs]
    return [
        replace(job, name=f"{job.name}-{hashlib.sha1(repr(job.words).encode()).hexdigest()[:6]}")
        if names.count(job.name) > 1
        else job
        for job in jobs
    ]
