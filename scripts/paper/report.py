"""The report as Markdown and as one HTML page that needs nothing else."""

import base64
import html
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.paper.tables import Table

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto; padding: 0 1rem;
       color: #1c1c1c; background: #fff }
table { border-collapse: collapse; margin: 1rem 0 }
th, td { padding: .3rem .8rem; text-align: right; border-bottom: 1px solid #d5d5d5 }
th:first-child, td:first-child { text-align: left }
th { border-bottom: 2px solid #555 }
img { max-width: 100%; height: auto }
p.note { color: #444 }
"""


@dataclass(frozen=True)
class Picture:
    """A PNG file and what it shows."""

    path: Path
    caption: str


@dataclass(frozen=True)
class Report:
    """A title, facts about how it was made, tables and pictures."""

    title: str
    facts: Sequence[tuple[str, str]]
    tables: Sequence[Table]
    pictures: Sequence[Picture]
    missing: Sequence[str]  # what was not run


def to_markdown(report: Report, folder: Path) -> str:
    """Pictures stay files; their paths are written as seen from `folder`."""
    lines = [f"# {report.title}", ""]
    for table in report.tables:
        lines += [f"## {table.title}", "", row(table.header)]
        lines.append(row(["---", *["---:"] * (len(table.header) - 1)]))
        lines += [*map(row, table.rows), "", table.note, ""]
    lines += ["## Figures", ""]
    for picture in report.pictures:
        path = os.path.relpath(picture.path, folder)
        lines += [f"![{picture.caption}]({path})", "", picture.caption, ""]
    if report.missing:
        lines += ["## Not run", "", *[f"- {each}" for each in report.missing], ""]
    lines += ["## How this was made", "", *[f"- {name}: {value}" for name, value in report.facts]]
    return "\n".join(lines) + "\n"


def row(cells: Sequence[str]) -> str:
    """A line of a table in Markdown."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def to_html(report: Report) -> str:
    """Everything in one file: pictures are inside it."""
    parts = [f"<h1>{html.escape(report.title)}</h1>"]
    for table in report.tables:
        parts += [f"<h2>{html.escape(table.title)}</h2>", "<table>", tag_row("th", table.header)]
        parts += [tag_row("td", cells) for cells in table.rows]
        parts += ["</table>", f'<p class="note">{html.escape(table.note)}</p>']
    parts.append("<h2>Figures</h2>")
    for picture in report.pictures:
        data = base64.b64encode(picture.path.read_bytes()).decode()
        caption = html.escape(picture.caption)
        parts.append(
            f'<figure><img alt="{caption}" src="data:image/png;base64,{data}">'
            f"<figcaption>{caption}</figcaption></figure>"
        )
    if report.missing:
        parts += ["<h2>Not run</h2>", as_list(report.missing)]
    facts = as_list([f"{name}: {value}" for name, value in report.facts])
    parts += ["<h2>How this was made</h2>", facts]
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{html.escape(report.title)}</title><style>{STYLE}</style></head>\n"
        f"<body>\n{body}\n</body></html>\n"
    )


def tag_row(tag: str, cells: Sequence[str]) -> str:
    """A line of a table in HTML."""
    return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def as_list(items: Sequence[str]) -> str:
    """A list in HTML."""
    return "<ul>" + "".join(f"<li>{html.escape(item)}</li>" for item in items) + "</ul>"
