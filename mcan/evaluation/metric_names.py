"""Metrics of files that were written under older names."""

from collections.abc import Mapping
from typing import Any

RENAMED = {
    "accuracy_by_type": "accuracy_by_answer_type",  # metrics.jsonl, lambda/table.json
    "shares": "component_shares",  # lambda/table.json
    "answers_per_second": "validation_questions_per_second",  # evaluate/<split>.json
}


def rename_old_metrics(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same values under the names and of the types that are written today.

    Takes a line of metrics.jsonl, a report of `evaluate`, or a row of `lambda`, old or new.
    """
    renamed = {RENAMED.get(name, name): value for name, value in values.items()}
    shares = renamed.get("component_shares")
    if isinstance(shares, str):  # "80.8 / 12.4 / 4.4 / 2.4 %"
        renamed["component_shares"] = [float(share) for share in shares.rstrip(" %").split("/")]
    groups = renamed.pop("components", None)
    if isinstance(groups, Mapping):  # {"all questions": {"counts": …, "shares": …}, …}
        groups = dict(groups)
        overall = groups.pop("all questions")
        renamed["component_counts"] = overall["counts"]
        renamed["component_shares"] = overall["shares"]
        if groups:
            counts = {name: group["counts"] for name, group in groups.items()}
            renamed["component_counts_by_objects"] = counts
    return renamed
