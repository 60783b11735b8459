"""How many components the attention chose, over all questions and by the objects they rest on."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from data.accuracy import average_percent
from mcan.prediction import Predictions

ALL = "all questions"


def describe_choices(
    predictions: Predictions,
    per_question: Mapping[int, float],
    num_objects: Mapping[int, int],
    k_max: int,
) -> dict[str, Any]:
    """Shares of K* and collapsed components, and the accuracy by objects where they are known.

    `per_question` are accuracies in percent. Discrete attention has no components.
    """
    ids = predictions.question_ids.tolist()
    groups = group_by_objects(ids, num_objects)
    described: dict[str, Any] = {}
    if groups:
        described["accuracy_by_objects"] = {
            name: average_percent(per_question[ids[row]] / 100 for row in rows)
            for name, rows in groups.items()
        }
    num_components = predictions.num_components.numpy()
    if not (num_components > 0).all():
        return described
    described["components"] = {
        name: share_components(num_components[rows], k_max)
        for name, rows in {ALL: np.arange(len(ids)), **groups}.items()
    }
    described["collapsed_share"] = share_collapsed(
        predictions.num_collapsed.numpy(), num_components
    )
    return described


def group_by_objects(ids: Sequence[int], num_objects: Mapping[int, int]) -> dict[str, np.ndarray]:
    """The rows of the questions about no, one and several objects; empty groups are left out."""
    count = np.array([num_objects.get(number, -1) for number in ids])
    rows = {
        "no object": np.flatnonzero(count == 0),
        "one object": np.flatnonzero(count == 1),
        "several objects": np.flatnonzero(count > 1),
    }
    return {name: places for name, places in rows.items() if len(places)}


def share_components(num_components: np.ndarray, k_max: int) -> dict[str, Any]:
    """Counts and percentages of K* = 1…k_max among questions (Q,)."""
    counts = np.bincount(num_components, minlength=k_max + 1)[1:].tolist()
    return {
        "questions": len(num_components),
        "counts": counts,
        "shares": [round(100 * count / len(num_components), 2) for count in counts],
    }


def share_collapsed(num_collapsed: np.ndarray, num_components: np.ndarray) -> float:
    """The share of all components that have collapsed; (Q,) each."""
    return round(int(num_collapsed.sum()) / int(num_components.sum()), 4)


def tell_choices(described: Mapping[str, Any]) -> str:
    """The same as lines to print."""
    accuracies = described.get("accuracy_by_objects", {})
    lines = []
    if "components" in described:
        most = len(described["components"][ALL]["shares"])
        sizes = "".join(f"{f'K* = {k}':>9}" for k in range(1, most + 1))
        lines.append(f"{'':18}{sizes} (%)" + ("   accuracy" if accuracies else ""))
        for name, group in described["components"].items():
            shares = "".join(f"{share:9.1f}" for share in group["shares"])
            accuracy = f"{accuracies[name]:15.2f}" if name in accuracies else ""
            lines.append(f"{name:18}{shares}{accuracy}")
        lines.append(f"collapsed components: {100 * described['collapsed_share']:.2f} %")
    else:
        lines += [f"{name:18}{accuracy:9.2f}" for name, accuracy in accuracies.items()]
    return "\n".join(lines)
