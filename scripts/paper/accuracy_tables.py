"""Table 1 of the report, accuracy and K*, and a table of sparsity."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace

from mcan.evaluation.metrics import format_shares
from mcan.training.summary import mean_and_deviation
from scripts.paper import published
from scripts.paper.tables import NOTHING, Result, Results, Table, drop_empty

TYPES = ("yes/no", "number", "other")  # of answers, in the paper's order
COLUMNS = {  # beside the accuracies, each with what the note says of it
    "hardest template": "The hardest template is the lowest of any seed.",
    "shown other images": "The control answers every question about the image of another one.",
    "K* = 1, 2, … (%)": "K* is selected with the models' own λ.",
    "overall, paper (test-dev / -std)": (
        "The paper's are on VQA-v2's test splits: the two can be compared only for data=vqa_v2, "
        "after a submission of `make export`."
    ),
}


def tabulate_accuracy(
    evaluations: Results, controls: Results, question_only: Result, data: str
) -> Table:
    """Table 1: every kind of run, and what questions alone tell; `controls` saw other images."""
    results = [each for found in evaluations.values() for each in found]
    types = list_types([*results, question_only])
    rows = []
    for kind, found in evaluations.items():
        cells = [*print_accuracies(found, types), name_hardest(found)]
        cells.append(mean_and_deviation([each["accuracy"] for each in controls[kind]]))
        rows.append((kind, *cells, print_components(found), print_published(kind, data)))
    alone = print_accuracies([question_only], types)
    rows.append(("question text alone", *alone, *[NOTHING] * len(COLUMNS)))
    note = (
        f"Official accuracy in percent on the {results[0]['num_questions']:,} validation questions "
        f"of {data}, mean ± standard deviation over seeds. Question text alone gives the answer "
        "that is most frequent in training for the same words, or for that type of question."
    )
    header = ("attention", *types, "overall", *COLUMNS)
    table = drop_empty(Table("Table 1: accuracy", header, tuple(rows), note))
    said = [sentence for column, sentence in COLUMNS.items() if column in table.header]
    return replace(table, note=" ".join([note, *said]))


def list_types(results: Iterable[Result]) -> list[str]:
    """The answer types that the data has, the official ones first."""
    found = {name for each in results for name in each["accuracy_by_answer_type"]}
    return [*(name for name in TYPES if name in found), *sorted(found - {*TYPES})]


def print_accuracies(found: Sequence[Result], types: Sequence[str]) -> list[str]:
    """The accuracy of each type and overall."""
    by_type = [each["accuracy_by_answer_type"] for each in found]
    values = ([each[name] for each in by_type if name in each] for name in types)
    cells = [mean_and_deviation(each) if each else NOTHING for each in values]
    return [*cells, mean_and_deviation([each["accuracy"] for each in found])]


def print_components(found: Sequence[Result]) -> str:
    """The shares of K*, means over seeds, of a head that selects it."""
    shares = [each["component_shares"] for each in found if "component_shares" in each]
    means = [statistics.mean(of_k) for of_k in zip(*shares, strict=True)]
    return format_shares(means).removesuffix(" %") if len(means) > 1 else NOTHING


def name_hardest(evaluations: Sequence[Result]) -> str:
    """The template with the lowest accuracy of all seeds, where the dataset has templates."""
    found = [
        (accuracy, name)
        for each in evaluations
        for name, accuracy in each.get("accuracy_by_template", {}).items()
    ]
    return "{1} {0:.2f}".format(*min(found)) if found else NOTHING


def print_published(kind: str, data: str) -> str:
    """The paper's overall accuracies of a head, where they are shown beside those of `data`."""
    if data not in published.BESIDE or kind not in published.TEST_DEV:
        return NOTHING
    dev, standard = published.TEST_DEV[kind], published.TEST_STANDARD[kind]
    return f"{dev['overall']:.2f} / {standard['overall']:.2f}"


def tabulate_sparsity(evaluations: Results) -> Table:
    """The shares of cells without weight, and of the image outside a density's support."""
    rows = []
    for kind, found in evaluations.items():
        percent = (
            [100 * each[name] for each in found if name in each]
            for name in ("zero_weight_share", "outside_support_share")
        )
        rows.append((kind, *(mean_and_deviation(each, 1) if each else NOTHING for each in percent)))
    header = ("attention", "cells of weight 0 (%)", "image outside the support (%)")
    note = (
        "Means over the validation questions and seeds; a dash where a head has no zero weights "
        "(softmax) or no bounded support (Gaussians)."
    )
    return Table("Sparsity", header, tuple(rows), note)
