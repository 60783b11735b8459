"""The one table of a benchmark: for a terminal, as Markdown, and as values for a file."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.measurement import Part, Row

TITLES = ["work", "against", "target", "median", "spread", "met"]


def write_lines(rows: Sequence[Row]) -> list[str]:
    """Columns for a terminal: the work, and what it is measured against below it."""
    lines = [f"{'':<72}{'target':>8}{'median':>9}  {'spread':<16} met"]
    for row in rows:
        work, against, reach, median, spread, reached = row.cells()
        lines += [f"{work:<72}{reach:>8}{median:>9}  {spread:<16} {reached}", f"    {against}"]
    return lines


def write_markdown(rows: Sequence[Row], circumstances: str) -> str:
    """The table as Markdown, under the circumstances of its measurement."""
    lines = [circumstances, "", "| " + " | ".join(TITLES) + " |", "|---" * len(TITLES) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row.cells()) + " |" for row in rows)]) + "\n"


def as_values(parts: Mapping[str, Part]) -> dict[str, Any]:
    """The rows of all parts, and the measurements behind them by part."""
    return {
        "table": [
            {"part": name, **asdict(row), "median": row.median, "reached": row.reached}
            for name, part in parts.items()
            for row in part.rows
        ],
        "details": {
            name: [{**asdict(each), "median": each.median} for each in part.details]
            for name, part in parts.items()
        },
    }
