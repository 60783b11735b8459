"""Tables of the report: what was measured, as rows of text, beside what the paper prints."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from data.human_attention.report import CONTROLS
from mcan.evaluation.metrics import format_shares
from mcan.training.summary import mean_and_deviation
from scripts.paper import published

NOTHING = "–"
EPOCHS = {
    "best": "the epoch with the highest accuracy on the validation split",
    "last": "the last epoch, as in the published code",
}


@dataclass(frozen=True)
class Table:
    """A heading, a header and rows; the note says how to read it."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str


Result = dict[str, Any]  # what evaluate writes
Results = dict[str, list[Result]]  # by kind of run, one entry per seed
Comparison = dict[str, Any]  # what human_attention writes


def drop_empty(table: Table) -> Table:
    """The table without the columns that have nothing in any row."""
    columns = [
        column
        for column in zip(table.header, *table.rows, strict=True)
        if {*column[1:]} != {NOTHING}
    ]
    header, *rows = zip(*columns, strict=True)
    return replace(table, header=header, rows=tuple(rows))


def of_epoch(table: Table, epoch: str, evaluations: Results) -> Table:
    """The table with the epoch of each run's model in its title and note."""
    numbers = ", ".join(
        f"{each['run']} {each['epoch']}" for kind in evaluations.values() for each in kind
    )
    note = f"{table.note} The models are those of {EPOCHS[epoch]}: {numbers}."
    return replace(table, title=f"{table.title}, {epoch} epoch", note=note)


def join_models(one: Comparison, other: Comparison) -> Comparison:
    """One comparison with the models of both, which were compared over the same maps."""
    return {**one, "models": [*one["models"], *other["models"]]}


def tabulate_divergence(
    comparisons: Sequence[Comparison], with_picked: Sequence[Comparison], data: str
) -> Table:
    """Table 2: every model and control, means over seeds; multimodal ones also with λ picked."""
    bits: dict[str, list[float]] = {}

    def add(name: str, found: dict[str, Any]) -> None:
        bits.setdefault(name, []).append(found["divergence_bits"]["mean"])

    for comparison in comparisons:
        for model in comparison["models"]:
            name = f"{model['head']}{', blurred by a cell' if model['blurred'] else ''}"
            add(name, model["overall"])
            add(f"{name}, another question's map", model["against_another_questions_map"])
        for name, control in comparison["controls"].items():
            add(CONTROLS[name], control)
    for comparison in with_picked:
        for model in comparison["models"]:
            add(f"{model['head']}, λ by cross-validation", model["overall"])
    note = (
        "Jensen–Shannon divergence from human attention maps in bits, lower is nearer; mean ± "
        "standard deviation over seeds. Smoothness alone lowers it: compare the blurred rows."
    )
    if with_picked:
        note += " Cross-validation picks λ for accuracy, which may leave one Gaussian."
    printed: dict[str, str] = {}
    if data in published.BESIDE:
        printed = {head: f"{value:.2f}" for head, value in published.DIVERGENCE.items()}
        note += " The paper's numbers are on VQA-HAT and do not say their unit."
    rows = [
        (name, mean_and_deviation(values, 3), printed.get(name, NOTHING))
        for name, values in sorted(bits.items())
    ]
    header = ("attention", "here", "paper")
    return drop_empty(Table("Table 2: human attention", header, tuple(rows), note))


def tabulate_lambda(tables: dict[str, list[dict[str, Any]]], data: str) -> Table:
    """For each floor of the variances: the λ that cross-validation picks, and its shares of K*."""
    rows = []
    for floor, found in tables.items():
        for table in found:
            pick, row = table["picks"][-1], table["rows"][-1]
            lam = NOTHING  # with k_max = 1 there is none to pick, and all rows are alike
            if pick["lam"] is not None:
                row_of = {(row["k_max"], row["lam"]): row for row in table["rows"]}
                row, folds = row_of[pick["k_max"], pick["lam"]], pick["lam_of_folds"]
                lam = f"{pick['lam']:g} ({min(folds):g} … {max(folds):g})"
            accuracy = f"{pick['held_out_accuracy']:.2f} ± {pick['held_out_error']:.2f}"
            shares = format_shares(row["component_shares"]).removesuffix(" %")
            collapsed = f"{100 * row['collapsed_share']:.1f}"
            rows.append((table["run"], floor, lam, accuracy, shares, collapsed))
    note = (
        "The floor is the variance that every component has at least: the paper's code adds 1e-6, "
        "`cell` is the variance of mass spread over a grid cell. The weights are the same, only "
        "the test-time fit differs. λ is picked again for each floor by cross-validation."
    )
    if data in published.BESIDE:
        shares = format_shares(published.SHARES).removesuffix(" %")
        rows.append(("paper, VQA-v2", "1e-6", f"{published.LAMBDA:g}", NOTHING, shares, NOTHING))
        note += " The paper's shares come from a sum over whole batches (docs/attention.md)."
    header = ("run", "floor", "λ (in the folds)", "held-out accuracy", "K* (%)", "collapsed (%)")
    return Table("λ and the number of components", header, tuple(rows), note)
