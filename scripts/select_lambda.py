"""make lambda: what every λ and every k_max would give, from one pass over the validation set.

python -m scripts.select_lambda checkpoint=runs/<name>
"""

import csv
import dataclasses
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
from omegaconf import DictConfig

from data.files import replacing, write_json
from mcan.candidate_answers import answer_candidates
from mcan.precision import choose_dtype
from mcan.processes import World, joined_world
from scripts.cross_validation import Pick, assign_folds, pick_lambda
from scripts.entry import command
from scripts.evaluation import ask, begin, choose_files, load_for, warn_of_training
from scripts.lambda_picture import can_draw, draw
from scripts.lambda_table import LambdaTable, Row, as_cells, make_grid
from scripts.trained import Trained

NAMES = ("table.csv", "table.json", "table.png")


@command("select_lambda")
def main(config: DictConfig) -> None:
    """Select, on as many processes as there are."""
    with joined_world(config.runtime.device, config.runtime.timeout_minutes) as world:
        select_lambda(config, world)


def select_lambda(config: DictConfig, world: World) -> None:
    """Answer under every k in one pass; the first process makes the table, prints and writes."""
    lams = make_grid(**config.grid)
    begin(config)
    trained = load_for(config, config.checkpoint, world)
    refuse_without_lambda(trained)
    asked = ask(config, [trained], world, annotated=True)
    image_ids = np.array([annotation.image_id for annotation in asked.annotations])
    folds = assign_folds(image_ids, config.folds, config.seed)
    files = choose_files(config, trained, "lambda", NAMES)
    dtype = choose_dtype(config.runtime.precision, world.device)
    candidates = answer_candidates(trained.model, asked.batches(world), world, dtype)
    if not world.is_first:
        return
    table = LambdaTable(candidates, asked.annotations, trained.words.answers.words, lams)
    picks = [pick_lambda(table, k_max, folds) for k_max in range(1, candidates.k_max + 1)]
    rows = table.rows()
    described = {
        "checkpoint": str(trained.path),
        "run": trained.name,
        "attention": trained.options,
        "split": config.split,
        "data": str(asked.folder.root),
        "trained_on": warn_of_training(trained, config.split),
        "num_questions": len(asked.questions),
        "folds": config.folds,
        "seed": config.seed,
    }
    write(files, described, rows, picks)
    print(format_picks(rows, picks))
    print(tell_use(picks[-1], trained, files))


def refuse_without_lambda(trained: Trained) -> None:
    """Raise for a head that selects nothing."""
    if "lam" not in trained.options or "k_max" not in trained.options:
        raise ValueError(
            f"{trained.path} was trained with {trained.options['name']} attention, which has no λ "
            "to select; give a checkpoint with multimodal attention"
        )


def write(
    files: list[Path], described: dict[str, Any], rows: Sequence[Row], picks: Sequence[Pick]
) -> None:
    """table.csv, table.json and, where matplotlib is installed, table.png: all of them or none."""
    k_max, types = rows[-1].k_max, list(rows[0].accuracy_by_type)
    cells = [as_cells(row, k_max, types) for row in rows]
    content = {
        **described,
        "picks": [dataclasses.asdict(pick) for pick in picks],
        "rows": [dataclasses.asdict(row) for row in rows],
    }
    with ExitStack() as stack:
        table = stack.enter_context(replacing(files[0]))
        with open(table, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, cells[0])
            writer.writeheader()
            writer.writerows(cells)
        if can_draw():
            picture = stack.enter_context(replacing(files[2]))
            draw(rows, picks, f"{described['run']} on {described['split']}", picture)
        write_json(files[1], content, indent=1)


def format_picks(rows: Sequence[Row], picks: Sequence[Pick]) -> str:
    """For each k_max the λ that was picked, its spread over the folds, and what it gives."""
    row_of = {(row.k_max, row.lam): row for row in rows}
    header = f"{'k_max':>5} {'λ':>8} {'in the folds':>15} {'accuracy':>9} {'held out':>15}"
    lines = [f"{header}  shares of K* (%), collapsed (%)"]
    for pick in picks:
        lam, spread = "any", "–"
        if pick.lam is not None:
            lam, folds = f"{pick.lam:g}", pick.lam_of_folds
            spread = f"{min(folds):g} … {max(folds):g}"
        row = row_of[pick.k_max, pick.lam if pick.lam is not None else rows[0].lam]
        held_out = f"{pick.held_out_accuracy:.2f} ± {pick.held_out_error:.2f}"
        shares = " / ".join(f"{share:.1f}" for share in row.shares)
        lines.append(
            f"{pick.k_max:>5} {lam:>8} {spread:>15} {pick.accuracy:9.2f} {held_out:>15}  {shares}, "
            f"{100 * row.collapsed_share:.2f}"
        )
    return "\n".join(lines)


def tell_use(pick: Pick, trained: Trained, files: list[Path]) -> str:
    """How to use the λ that was picked, and where the table is."""
    lines = [f"written to {', '.join(map(str, files if can_draw() else files[:2]))}"]
    if not can_draw():
        lines.append("no picture was drawn: that needs matplotlib, pip install -e '.[plot]'")
    if pick.lam is None:
        lines.append("with k_max = 1 there is nothing to select")
    else:
        lines.append(
            f"for k_max = {pick.k_max} use attention.lam={pick.lam:g} (it was trained with "
            f"{trained.options['lam']:g}): make evaluate CHECKPOINT={quote(str(trained.path))} "
            f"ARGS=attention.lam={pick.lam:g}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
