"""The metrics of an answered split: each is one function from answers and annotations to values."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from data.registry import Registry
from data.shapes.metadata import QuestionMetadata
from data.vqa.accuracy import Scores, average_percent
from data.vqa.questions import Annotation
from mcan.evaluation.predict import Predictions

OBJECTS = ("no object", "one object", "several objects")  # that a question is about


@dataclass(frozen=True)
class AnsweredSplit:
    """What a metric is computed from; everything by question id is in plain Python."""

    predictions: Predictions  # rows by ascending question id
    answers: Mapping[int, str]
    annotations: Sequence[Annotation]
    scores: Scores  # the official accuracy, per question too
    metadata: Mapping[int, QuestionMetadata]  # by question id; empty for most data
    k_max: int  # the largest K* there may be


# A metric is a function of an AnsweredSplit. It returns values that JSON has, by the names they
# get in metrics.jsonl, evaluate/<split>.json and, if they are numbers, TensorBoard.
METRICS: Registry[Callable[[AnsweredSplit], Mapping[str, Any]]] = Registry("metric")
register_metric = METRICS.register


def compute_metrics(answered: AnsweredSplit) -> dict[str, Any]:
    """The values of all metrics; no two may give one name."""
    values: dict[str, Any] = {}
    for name in METRICS:
        computed = METRICS[name](answered)
        taken = sorted(values.keys() & computed.keys())
        if taken:
            raise ValueError(f"the metric '{name}' gives '{taken[0]}', which another one gives too")
        values.update(computed)
    return values


@register_metric("accuracy")
def official_accuracy(answered: AnsweredSplit) -> dict[str, Any]:
    """The official accuracies in percent."""
    scores = answered.scores
    return {
        "accuracy": scores.overall,
        "accuracy_by_answer_type": scores.per_answer_type,
        "accuracy_by_question_type": scores.per_question_type,
    }


@register_metric("components")
def component_choices(answered: AnsweredSplit) -> dict[str, Any]:
    """Counts and shares of K* = 1…k_max, and of collapsed components; none for discrete."""
    num_components = answered.predictions.num_components.numpy()
    if not (num_components > 0).all():
        return {}
    counts = count_components(num_components, answered.k_max)
    collapsed = answered.predictions.num_collapsed.numpy()
    return {
        "component_counts": counts,
        "component_shares": share_components(counts),
        "collapsed_share": share_collapsed(collapsed, num_components),
    }


@register_metric("sparsity")
def sparsity(answered: AnsweredSplit) -> dict[str, Any]:
    """The share of cells with weight exactly 0 and of the image outside the density's support.

    Both are means over questions, and each is given only for heads that can have it.
    """
    predictions = answered.predictions
    columns = {
        "zero_weight_share": predictions.zero_weight_share,
        "outside_support_share": predictions.outside_support_share,
    }
    means = {name: float(column.double().mean()) for name, column in columns.items()}
    return {name: round(mean, 4) for name, mean in means.items() if not math.isnan(mean)}


@register_metric("perplexity")
def perplexity(answered: AnsweredSplit) -> dict[str, Any]:
    """Over how many cells attention is spread: the median of its weights' perplexity."""
    median = float(answered.predictions.perplexity.double().median())
    return {} if math.isnan(median) else {"perplexity": round(median, 2)}


@register_metric("objects")
def by_objects(answered: AnsweredSplit) -> dict[str, Any]:
    """Accuracy and K* by the number of objects that decide the answer, where that is known."""
    groups = group_rows(
        answered, {n: OBJECTS[min(2, number)] for n, number in count_objects(answered).items()}
    )
    if not groups:
        return {}
    values: dict[str, Any] = {"accuracy_by_objects": average_groups(answered, groups)}
    num_components = answered.predictions.num_components.numpy()
    if (num_components > 0).all():
        values["component_counts_by_objects"] = {
            name: count_components(num_components[rows], answered.k_max)
            for name, rows in groups.items()
        }
    return values


@register_metric("templates")
def by_template(answered: AnsweredSplit) -> dict[str, Any]:
    """The accuracy by question template, in percent, where the dataset has templates."""
    groups = group_rows(answered, {n: each.template for n, each in answered.metadata.items()})
    return {"accuracy_by_template": average_groups(answered, groups)} if groups else {}


def count_objects(answered: AnsweredSplit) -> dict[int, int]:
    """By question id, the objects that decide it: its metadata's, or else those it has counted."""
    if answered.metadata:
        return {n: each.num_objects for n, each in answered.metadata.items()}
    return counted_objects(answered.annotations)


def counted_objects(annotations: Iterable[Annotation]) -> dict[int, int]:
    """By id of the questions that count ("how many"), the number that most people gave."""
    return {
        each.question_id: int(each.multiple_choice_answer)
        for each in annotations
        if each.question_type.startswith("how many") and each.multiple_choice_answer.isdecimal()
    }


def group_rows(answered: AnsweredSplit, group_of: Mapping[int, str]) -> dict[str, list[int]]:
    """The rows of the predictions by the group of their question id, groups by name."""
    groups: dict[str, list[int]] = {}
    for row, question_id in enumerate(answered.predictions.question_ids.tolist()):
        if question_id in group_of:
            groups.setdefault(group_of[question_id], []).append(row)
    return dict(sorted(groups.items()))


def average_groups(
    answered: AnsweredSplit, groups: Mapping[str, Sequence[int]]
) -> dict[str, float]:
    """The accuracy of each group of rows, in percent."""
    ids, accuracies = answered.predictions.question_ids.tolist(), answered.scores.per_question
    return {
        name: average_percent(accuracies[ids[row]] / 100 for row in rows)
        for name, rows in groups.items()
    }


def count_components(num_components: np.ndarray, k_max: int) -> list[int]:
    """The number of questions (Q,) with K* = 1…k_max."""
    counts: list[int] = np.bincount(num_components, minlength=k_max + 1)[1:].tolist()
    return counts


def share_components(counts: Sequence[int]) -> list[float]:
    """Counts of K* in percent of all questions."""
    return [round(100 * count / sum(counts), 2) for count in counts]


def format_shares(shares: Sequence[float]) -> str:
    """Shares of K* on one line, such as 80.8 / 12.4 / 4.4 / 2.4 %."""
    return " / ".join(f"{share:.1f}" for share in shares) + " %"


def share_collapsed(num_collapsed: np.ndarray, num_components: np.ndarray) -> float:
    """The share of all components that have collapsed; (Q,) each."""
    return round(int(num_collapsed.sum()) / int(num_components.sum()), 4)
