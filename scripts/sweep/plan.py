"""The plan of a sweep: its jobs and its λ, kept in a file."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path

from data.io.atomic_files import read_json, write_json
from scripts.cli.aliases import rename_word

# settings of `runtime` that may differ between starts: how fast a job runs, and not what it gives
MAY_DIFFER = {
    f"runtime.{name}"
    for name in (
        "device", "num_threads", "micro_batches", "timeout_minutes", "checkpoint_every_minutes",
        "keep", "reader", "stage_to", "loader_threads", "max_restarts", "show_progress", "profile",
    )
}  # fmt: skip


@dataclass(frozen=True)
class Job:
    """One training run."""

    name: str  # of its folder
    overrides: list[str]  # the settings of its run
    swept: dict[str, str]  # those of them that make it differ from the others

    @property
    def decisive_overrides(self) -> set[str]:
        """The overrides on which its results depend."""
        return {
            override
            for override in self.overrides
            if override.partition("=")[0].lstrip("+") not in MAY_DIFFER
        }


@dataclass(frozen=True)
class Plan:
    """All jobs of a sweep, and how their tables of λ are made."""

    folder: Path
    jobs: list[Job]
    lams: list[float]
    folds: int
    gpus: int

    def save(self) -> None:
        """Write it where a report finds it."""
        content = {**asdict(self), "folder": str(self.folder)}
        write_json(self.folder / "sweep.json", content, indent=1)


def load_plan(folder: Path) -> Plan:
    """The plan of a sweep that was started before."""
    if not (folder / "sweep.json").is_file():
        raise ValueError(f"there is no sweep in {folder}: it holds no sweep.json")
    content = read_json(folder / "sweep.json")
    key = "overrides" if "overrides" in content["jobs"][0] else "words"  # as in 0.1
    jobs = [
        Job(job["name"], [rename_word(each) for each in job[key]], job["swept"])
        for job in content.pop("jobs")
    ]
    return Plan(**{**content, "folder": folder, "jobs": jobs})


def merge(plan: Plan) -> Plan:
    """The plan with the jobs that the sweep had before; a job keeps its settings."""
    if not (plan.folder / "sweep.json").is_file():
        return plan
    jobs = {job.name: job for job in load_plan(plan.folder).jobs}
    for job in plan.jobs:
        before = jobs.get(job.name, job)
        if before.decisive_overrides != job.decisive_overrides:
            other = " ".join(sorted(before.decisive_overrides ^ job.decisive_overrides))
            raise ValueError(
                f"{plan.folder} has a job {job.name} with other settings (compare {other}); give "
                f"this sweep another name: sweep.name=…"
            )
        jobs[job.name] = job
    return replace(plan, jobs=list(jobs.values()))
