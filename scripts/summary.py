"""How a training ended, for the person who started it."""

from pathlib import Path
from shlex import quote
from typing import Any

from omegaconf import DictConfig

from data.blind import score_question_only
from data.splits import Folder

BOARD = ".venv/bin/tensorboard"


def summarise(
    config: DictConfig, lines: list[dict[str, Any]], folder: Path, num_figures: int
) -> str:
    """Accuracy beside that of a guess from the question alone, K*, the files, what to run next."""
    last = lines[-1]
    best = max(lines, key=lambda line: float(line["accuracy"]))
    blind = score_question_only(Folder(config.data.root), config.train_split, config.val_split)
    rows = [("overall", last["accuracy"], blind.overall)]
    rows += [
        (name, accuracy, blind.per_answer_type[name])
        for name, accuracy in sorted(last["accuracy_by_type"].items())
    ]
    table = [f"{'validation accuracy':<22}{'model':>8}{'question only':>16}"]
    table += [f"  {name:<20}{model:8.2f}{guess:16.2f}" for name, model, guess in rows]
    if "component_shares" in last:
        table.append(f"number of components K* = 1, 2, …: {last['component_shares']}")
    if best["accuracy"] > last["accuracy"]:
        table.append(f"best.pt is of epoch {best['epoch']}: {best['accuracy']:.2f}")
    return "\n".join([*table, "", *list_files(folder, num_figures), "", *suggest(config, folder)])


def list_files(folder: Path, num_figures: int) -> list[str]:
    """Where things are."""
    lines = [f"best.pt, last.pt, config.yaml and metrics.jsonl are in {folder}"]
    if num_figures:
        lines.append(f"{num_figures} figures of its attention are in {folder / 'figures'}")
    return [*lines, f"curves and maps: {BOARD} --logdir {quote(str(folder.parent))}"]


def suggest(config: DictConfig, folder: Path) -> list[str]:
    """What to run next."""
    run = quote(str(folder))
    commands = [f"make evaluate CHECKPOINT={run}"]
    if "lam" in config.attention:
        commands.append(f"make lambda CHECKPOINT={run}")
    commands.append(f"make gallery CHECKPOINTS={run}")
    if Folder(config.data.root).questions("test").is_file():
        commands.append(f"make export CHECKPOINT={run}")
    return ["next:", *(f"  {each}" for each in commands)]
