"""The one table of a benchmark: for a terminal, and as a block of a Markdown page."""

from collections.abc import Sequence
from pathlib import Path

from scripts.bench.measurement import Row

TITLES = ["work", "against", "reach", "median", "spread", "reached"]
START, END = "<!-- table of make bench -->", "<!-- end of the table -->"


def write_lines(rows: Sequence[Row]) -> list[str]:
    """Columns for a terminal: the work, and what it is measured against below it."""
    lines = [f"{'':<72}{'reach':>8}{'median':>9}  {'spread':<16} reached"]
    for row in rows:
        work, against, reach, median, spread, reached = row.cells()
        lines += [f"{work:<72}{reach:>8}{median:>9}  {spread:<16} {reached}", f"    {against}"]
    return lines


def write_markdown(rows: Sequence[Row], circumstances: str) -> str:
    """The table as Markdown, under the circumstances that it was measured in."""
    lines = [circumstances, "", "| " + " | ".join(TITLES) + " |", "|---" * len(TITLES) + "|"]
    lines += ["| " + " | ".join(row.cells()) + " |" for row in rows]
    return "\n".join(lines)


def update_page(path: Path, block: str) -> None:
    """Put a new table in the place of the one on a page; all else there stays."""
    text = path.read_text(encoding="utf-8")
    if text.count(START) != 1 or text.count(END) != 1:
        raise ValueError(f"{path} has no place for the table: it needs '{START}' and '{END}'")
    before, rest = text.split(START)
    after = rest.split(END)[1]
    path.write_text(f"{before}{START}\n{block}\n{END}{after}", encoding="utf-8")
