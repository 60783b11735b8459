"""How a training run ended, for the person who started it."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from data.vqa.accuracy import Scores
from data.vqa.data_folder import DataFolder
from mcan.evaluation.metrics import format_shares

TENSORBOARD = ".venv/bin/tensorboard"


def summarise(lines: Sequence[Mapping[str, Any]], question_only: Scores) -> str:
    """Validation accuracy beside that of answering from the question alone, and K*."""
    last = lines[-1]
    best = max(lines, key=lambda line: float(line["accuracy"]))
    rows = [("overall", last["accuracy"], question_only.overall)]
    rows += [
        (name, accuracy, question_only.per_answer_type[name])
        for name, accuracy in sorted(last["accuracy_by_answer_type"].items())
    ]
    table = [f"{'validation accuracy':<22}{'model':>8}{'question only':>16}"]
    table += [f"  {name:<20}{model:8.2f}{guess:16.2f}" for name, model, guess in rows]
    shares = last.get("component_shares", ())
    if len(shares) > 1:
        table.append(f"number of components K* = 1, 2, …: {format_shares(shares)}")
    if best["accuracy"] > last["accuracy"]:
        table.append(f"best.pt is of epoch {best['epoch']}: {best['accuracy']:.2f}")
    if "limit_batches" in last:
        table.append(describe_limit(last))
    return "\n".join(table)


def describe_limit(line: Mapping[str, Any]) -> str:
    """What a run with runtime.limit_batches was trained and validated on."""
    number = line["limit_batches"]
    return (
        f"NOT A WHOLE RUN: runtime.limit_batches={number} trained on at most {number} batches per "
        f"epoch and validated on {line['validation_questions']} questions"
    )


def mean_and_deviation(values: Sequence[float], digits: int = 2) -> str:
    """Mean ± standard deviation of what runs with several seeds ended with."""
    mean = f"{statistics.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.{digits}f}"


def describe_files(run: Path, num_figures: int) -> str:
    """Where the files of the run are."""
    lines = [f"best.pt, last.pt, config.yaml and metrics.jsonl are in {run}"]
    if num_figures:
        lines.append(f"{num_figures} figures of its attention are in {run / 'figures'}")
    if (run / "tensorboard").is_dir():
        lines.append(f"curves and maps: {TENSORBOARD} --logdir {quote(str(run.parent))}")
    return "\n".join(lines)


def suggest_commands(
    run: Path, folder: DataFolder, selects_components: bool, modules: Sequence[str] = ()
) -> str:
    """What to run next, with the modules that the run's parts are registered in."""
    name = quote(str(run)) + (f" ARGS='modules=[{','.join(modules)}]'" if modules else "")
    commands = [f"make evaluate CHECKPOINT={name}"]
    if selects_components:
        commands.append(f"make lambda CHECKPOINT={name}")
    commands.append(f"make gallery CHECKPOINTS={name}")
    if folder.has_questions("test"):
        commands.append(f"make export CHECKPOINT={name}")
    return "\n".join(["next:", *(f"  {each}" for each in commands)])
