"""What the jobs of a sweep have measured: a row for each model and λ, and cells over the seeds."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.io.atomic_files import write_csv
from mcan.evaluation.lambda_report import as_cells
from mcan.evaluation.lambda_selection import Row
from mcan.evaluation.metric_names import rename_old_metrics
from scripts.sweep.plan import Job, Plan
from scripts.sweep.states import make_run, needs_table, read_table

SEED, SIZE = "seed", "attention.k_max"


@dataclass(frozen=True)
class Result:
    """One model under one λ; a head without one has neither λ nor k_max."""

    job: Job
    seed: int
    row: Row
    held_out: float | None  # accuracy under the λ chosen without the fold

    @property
    def lam(self) -> float | None:
        return self.row.lam if self.row.k_max else None

    @property
    def others(self) -> tuple[str, ...]:
        """What it differs in from other models, beside k_max and the seed."""
        swept = self.job.swept.items()
        return tuple(f"{key}={value}" for key, value in swept if key not in (SEED, SIZE))


@dataclass(frozen=True)
class Cell:
    """The models of all seeds with one setting and one λ."""

    others: tuple[str, ...]
    k_max: int
    lam: float | None
    accuracies: tuple[float, ...]  # of the seeds
    held_out: float | None  # mean over the seeds

    @property
    def mean(self) -> float:
        return statistics.fmean(self.accuracies)


def read_results(plan: Plan, job: Job) -> list[Result]:
    """The rows of a job that is done."""
    run = make_run(plan, job)
    config = run.config()
    if not needs_table(run):
        best = max(run.metrics(), key=lambda line: float(line["accuracy"]))
        row = Row(0, 0.0, best["accuracy"], best["accuracy_by_answer_type"], [], 0.0)
        return [Result(job, config["seed"], row, None)]
    table = read_table(plan, job)
    assert table is not None
    k_max = config["attention"]["k_max"]
    rows = [Row(**rename_old_metrics(row)) for row in table["rows"] if row["k_max"] == k_max]
    (pick,) = [pick for pick in table["picks"] if pick["k_max"] == k_max]
    return [
        Result(job, config["seed"], row, pick["held_out_accuracy"])
        for row in rows
        if row.lam in plan.lams
    ]


def group(results: Sequence[Result]) -> list[Cell]:
    """Seeds together, in the order of the jobs."""
    together: dict[tuple[Any, ...], list[Result]] = {}
    for result in results:
        together.setdefault((result.others, result.row.k_max, result.lam), []).append(result)
    cells = []
    for (others, k_max, lam), same in together.items():
        held_out = [result.held_out for result in same if result.held_out is not None]
        accuracies = tuple(result.row.accuracy for result in same)
        mean = statistics.fmean(held_out) if held_out else None
        cells.append(Cell(others, k_max, lam, accuracies, mean))
    return cells


def choose_best(cells: Sequence[Cell]) -> Cell:
    """The highest mean among those with the most seeds; of equals the fewest components."""
    most = max(len(cell.accuracies) for cell in cells)
    full = [cell for cell in cells if len(cell.accuracies) == most]
    return max(full, key=lambda cell: (round(cell.mean, 9), -cell.k_max, cell.lam or 0.0))


def write_results(
    plan: Plan, results: Sequence[Result], states: dict[str, str], path: Path
) -> None:
    """One CSV: a line for every model and λ, and one for every job that is not done."""
    keys = list(dict.fromkeys(key for job in plan.jobs for key in job.swept))
    k_max = max((result.row.k_max for result in results), default=0)
    types = list(
        dict.fromkeys(name for each in results for name in each.row.accuracy_by_answer_type)
    )
    empty = Row(0, 0.0, 0.0, dict.fromkeys(types, 0.0), [], 0.0)
    header = ["job", "state", *keys, "seed", *as_cells(empty, k_max, types)]
    lines = []
    for result in results:
        cells = as_cells(result.row, k_max, types)
        if result.lam is None:
            cells = {key: cells[key] for key in cells if key.startswith("accuracy")}
        lines.append({**start_line(result.job, states), "seed": result.seed, **cells})
    done = {result.job.name for result in results}
    lines += [start_line(job, states) for job in plan.jobs if job.name not in done]
    write_csv(path, dict.fromkeys(header), lines)


def start_line(job: Job, states: dict[str, str]) -> dict[str, Any]:
    return {"job": job.name, "state": states[job.name], **job.swept}
