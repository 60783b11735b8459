"""Tables of the report: what was measured, as rows of text, beside what the paper prints."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mcan.evaluation.metrics import format_shares
from scripts.paper import published
from scripts.paper.runs import FINE_TUNED, HEADS

TYPES = ("yes/no", "number", "other", "overall")
NOT_RUN = "not run"
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


Results = dict[str, list[dict[str, Any]]]  # by kind of run, one entry per seed
Comparison = dict[str, Any]  # what human_attention writes


def tabulate_accuracy(
    evaluations: Results, controls: Results, data: str, num_questions: int
) -> Table:
    """Table 1, with rows for fine-tuning and for variants; `controls` were shown other images."""
    header = (
        "attention",
        *(f"{name}, here" for name in TYPES),
        "hardest template",
        "shown other images",
        "overall, paper (test-dev / -std)",
    )
    rows = []
    for kind in dict.fromkeys((*HEADS, FINE_TUNED, *evaluations)):
        found = [
            {**each["accuracy_by_answer_type"], "overall": each["accuracy"]}
            for each in evaluations.get(kind, [])
        ]
        cells = [spread([each[name] for each in found if name in each]) for name in TYPES]
        shown_others = spread([each["accuracy"] for each in controls.get(kind, [])])
        hardest = name_hardest(evaluations.get(kind, []))
        rows.append((kind, *cells, hardest, shown_others, print_published(kind)))
    note = (
        f"Official accuracy in percent on the {num_questions:,} validation questions of {data}, "
        "mean ± standard deviation over seeds; the hardest template is the lowest of any seed. The "
        "paper's are on VQA-v2's test splits: the two can be compared only for data=vqa_v2, after "
        "a submission of `make export`."
    )
    return Table("Table 1: accuracy", header, tuple(rows), note)


def tabulate_sparsity(evaluations: Results) -> Table:
    """The shares of K*, of cells without weight, and of the image outside a density's support."""
    rows = []
    for kind, found in evaluations.items():
        shares = [each["component_shares"] for each in found if "component_shares" in each]
        means = [statistics.mean(of_k) for of_k in zip(*shares, strict=True)]
        percent = (
            [100 * each[name] for each in found if name in each]
            for name in ("zero_weight_share", "outside_support_share")
        )
        components = format_shares(means).removesuffix(" %") if len(means) > 1 else "–"
        rows.append((kind, components, *(spread(each, 1) if each else "–" for each in percent)))
    header = ("attention", "K* (%)", "cells of weight 0 (%)", "image outside the support (%)")
    note = (
        "Means over the validation questions and seeds, with the models' own λ; a dash where a "
        "head selects no K*, has no zero weights (softmax) or no bounded support (Gaussians)."
    )
    return Table("Components and sparsity", header, tuple(rows), note)


def of_epoch(table: Table, epoch: str, evaluations: Results) -> Table:
    """The table, which says of which epoch of every run its models are."""
    numbers = ", ".join(
        f"{each['run']} {each['epoch']}" for kind in evaluations.values() for each in kind
    )
    note = f"{table.note} The models are those of {EPOCHS[epoch]}: {numbers}."
    return replace(table, title=f"{table.title}, {epoch} epoch", note=note)


def name_hardest(evaluations: Sequence[dict[str, Any]]) -> str:
    """The template with the lowest accuracy of all seeds, where the dataset has templates."""
    found = [
        (accuracy, name)
        for each in evaluations
        for name, accuracy in each.get("accuracy_by_template", {}).items()
    ]
    return "{1} {0:.2f}".format(*min(found)) if found else "–"


def print_published(kind: str) -> str:
    """The paper's overall accuracies of a head."""
    if kind not in published.TEST_DEV:
        return "–"
    dev, standard = published.TEST_DEV[kind], published.TEST_STANDARD[kind]
    return f"{dev['overall']:.2f} / {standard['overall']:.2f}"


def join_models(one: Comparison, other: Comparison) -> Comparison:
    """Two comparisons over the same maps as one."""
    return {**one, "models": [*one["models"], *other["models"]]}


def tabulate_divergence(
    comparisons: Sequence[Comparison | None], with_picked: Sequence[Comparison | None]
) -> Table:
    """Table 2: every model and control, means over seeds; multimodal ones also with λ picked."""
    bits: dict[str, list[float]] = {head: [] for head in HEADS}

    def add(name: str, found: dict[str, Any]) -> None:
        bits.setdefault(name, []).append(found["divergence_bits"]["mean"])

    for comparison in filter(None, comparisons):
        for model in comparison["models"]:
            name = f"{model['head']}{', blurred by a cell' if model['blurred'] else ''}"
            add(name, model["overall"])
            add(f"{name}, another question's map", model["against_another_questions_map"])
        for name, control in comparison["controls"].items():
            add(name, control)
    for comparison in filter(None, with_picked):
        for model in comparison["models"]:
            add(f"{model['head']}, λ by cross-validation", model["overall"])
    printed = {head: f"{value:.2f}" for head, value in published.DIVERGENCE.items()}
    rows = [
        (name, spread(values, 3), printed.get(name, "–")) for name, values in sorted(bits.items())
    ]
    note = (
        "Jensen–Shannon divergence from human attention maps in bits, lower is nearer; mean ± "
        "standard deviation over seeds. Smoothness alone lowers it: compare the blurred rows. "
        "Cross-validation picks λ for accuracy, which may leave one Gaussian. The paper's numbers "
        "are on VQA-HAT and do not say their unit."
    )
    return Table("Table 2: human attention", ("attention", "here", "paper"), tuple(rows), note)


def tabulate_lambda(tables: dict[str, list[dict[str, Any]]]) -> Table:
    """For each floor of the variances: the λ that cross-validation picks, and its shares of K*."""
    rows = []
    for floor, found in tables.items():
        for table in found:
            pick = table["picks"][-1]
            row_of = {(row["k_max"], row["lam"]): row for row in table["rows"]}
            row = row_of[pick["k_max"], pick["lam"]]
            folds = pick["lam_of_folds"]
            lam = f"{pick['lam']:g} ({min(folds):g} … {max(folds):g})"
            accuracy = f"{pick['held_out_accuracy']:.2f} ± {pick['held_out_error']:.2f}"
            shares = format_shares(row["component_shares"]).removesuffix(" %")
            collapsed = f"{100 * row['collapsed_share']:.1f}"
            rows.append((table["run"], floor, lam, accuracy, shares, collapsed))
    shares = format_shares(published.SHARES).removesuffix(" %")
    rows.append(("paper, VQA-v2", "1e-6", f"{published.LAMBDA:g}", "–", shares, "–"))
    header = ("run", "floor", "λ (in the folds)", "held-out accuracy", "K* (%)", "collapsed (%)")
    note = (
        "The floor is the variance that every component has at least: the paper's code adds 1e-6, "
        "`cell` is the variance of mass spread over a grid cell. The weights are the same, only "
        "the test-time fit differs. λ is picked again for each floor by cross-validation. The "
        "paper's shares come from a sum over whole batches (docs/attention.md)."
    )
    return Table("λ and the number of components", header, tuple(rows), note)


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Mean ± standard deviation over seeds."""
    if not values:
        return NOT_RUN
    mean = f"{statistics.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.{digits}f}"
