"""The files of a comparison with human attention: a summary as JSON, and every map as CSV."""

import csv
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from data.human_attention.comparison import COLUMNS, HumanComparison
from data.io.atomic_files import atomic_write, check_output_file, read_json, write_json

KIND = "comparison with human attention"


def check_replaceable(summary: Path, checkpoints: Collection[Path]) -> None:
    """Raise when something other than a comparison of these checkpoints would be lost."""
    table = summary.with_suffix(".csv")
    for path in (summary, table):
        check_output_file(path)
    if summary.exists():
        found = read_json(summary)
        known = found.get("checkpoints", []) if isinstance(found, dict) else []
        ours = isinstance(found, dict) and found.get("kind") == KIND
        if not ours or {Path(p).resolve() for p in known} != {p.resolve() for p in checkpoints}:
            what = "the comparison of other checkpoints" if ours else "something else"
            raise ValueError(f"{summary} holds {what}; name another folder with output=…")
    elif table.exists():
        raise ValueError(
            f"{table} is there without {summary.name}, so it is something else; name another "
            f"folder with output=…"
        )


def write_comparison(
    summary: Path, description: Mapping[str, Any], comparison: HumanComparison
) -> None:
    """The summary, with what was compared and how, then the measures of every map."""
    write_json(summary, {"kind": KIND, **description, **comparison.to_json()}, indent=1)
    with (
        atomic_write(summary.with_suffix(".csv")) as temporary,
        open(temporary, "w", encoding="utf-8", newline="") as file,
    ):
        table = csv.writer(file)
        table.writerow(COLUMNS)
        table.writerows(comparison.rows())
