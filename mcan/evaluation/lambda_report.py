"""The table of λ as files, and as lines to print."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from data.io.atomic_files import write_csv
from mcan.evaluation.lambda_selection import Pick, Row
from mcan.evaluation.metrics import format_shares
from mcan.evaluation.trained_model import TrainedModel


def as_cells(row: Row, k_max: int, types: Sequence[str]) -> dict[str, Any]:
    """A row for a CSV file whose columns have room for k_max components."""
    shares = [*row.component_shares, *[0.0] * (k_max - row.k_max)]
    return {
        "k_max": row.k_max,
        "lam": row.lam,
        "accuracy": row.accuracy,
        **{f"accuracy {name}": row.accuracy_by_answer_type[name] for name in types},
        **{f"share K*={k}": share for k, share in enumerate(shares, 1)},
        "collapsed_share": row.collapsed_share,
    }


def write_table(path: Path, rows: Sequence[Row]) -> None:
    """The rows as a CSV file."""
    k_max, types = rows[-1].k_max, list(rows[0].accuracy_by_answer_type)
    lines = [as_cells(row, k_max, types) for row in rows]
    write_csv(path, lines[0], lines)


def format_picks(rows: Sequence[Row], picks: Sequence[Pick]) -> str:
    """For each k_max the λ that was picked, its spread over the folds, and what it gives."""
    row_of = {(row.k_max, row.lam): row for row in rows}
    header = f"{'k_max':>5} {'λ':>8} {'in the folds':>15} {'accuracy':>9} {'held out':>15}"
    lines = [f"{header}  shares of K*, collapsed"]
    for pick in picks:
        lam, spread = "any", "–"
        if pick.lam is not None:
            lam, folds = f"{pick.lam:g}", pick.lam_of_folds
            spread = f"{min(folds):g} … {max(folds):g}"
        row = row_of[pick.k_max, pick.lam if pick.lam is not None else rows[0].lam]
        held_out = f"{pick.held_out_accuracy:.2f} ± {pick.held_out_error:.2f}"
        lines.append(
            f"{pick.k_max:>5} {lam:>8} {spread:>15} {pick.accuracy:9.2f} {held_out:>15}  "
            f"{format_shares(row.component_shares)}, {100 * row.collapsed_share:.2f} %"
        )
    return "\n".join(lines)


def format_use(pick: Pick, trained: TrainedModel, changed: Mapping[str, Any]) -> str:
    """How to use the λ that was picked, with the head's options that were changed to pick it."""
    if pick.lam is None:
        return "with k_max = 1 there is nothing to select"
    options = {**changed, "lam": f"{pick.lam:g}"}
    arguments = " ".join(f"attention.{name}={value}" for name, value in options.items())
    return (
        f"for k_max = {pick.k_max} use attention.lam={pick.lam:g} (it was trained with "
        f"{trained.options['lam']:g}): make evaluate CHECKPOINT={quote(str(trained.path))} "
        f"ARGS={quote(arguments)}"
    )
