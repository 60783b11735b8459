"""A comparison with people as tables on the screen, a summary as JSON, and every map as CSV."""

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from data.human_attention.agreement import Agreement, Estimate
from data.human_attention.comparison import HumanComparison, Paired
from data.io.atomic_files import (
    atomic_write,
    check_output_file,
    read_json,
    write_csv,
    write_json,
)

KIND = "comparison with human attention"
CONTROLS = {
    "uniform": "uniform attention",
    "centre": "centre: mean map of other images",
    "another_person": "another person's map",
}


def check_replaceable(summary: Path, checkpoints: Collection[Path]) -> None:
    """Raise when something other than a comparison of these checkpoints would be lost."""
    table = summary.with_suffix(".csv")
    for path in (summary, table):
        check_output_file(path)
    if summary.exists():
        found = read_json(summary)
        ours = isinstance(found, dict) and found.get("kind") == KIND
        known = found.get("checkpoints", []) if ours else []
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
    """The summary, with what was compared and how, and the measures of every map: both or none."""
    content = {"kind": KIND, **description, **comparison.to_json()}
    rows = list(comparison.rows())
    with atomic_write(summary) as unfinished:  # gets its name last: where it is, the table is
        write_json(unfinished, content, indent=1)
        write_csv(summary.with_suffix(".csv"), rows[0], rows)


def format_comparison(comparison: HumanComparison) -> str:
    """All tables, one after the other."""
    summary = comparison.to_json()
    lines = [
        f"{summary['maps']:,} maps that people made of {summary['questions']:,} questions about "
        f"{summary['images']:,} images; {summary['black_maps_left_out']:,} black maps left out"
    ]
    for title, rows in list_tables(comparison).items():
        if rows:
            lines += ["", *format_rows(title, rows)]
    if comparison.paired:
        lines += ["", *format_paired(comparison.paired)]
    return "\n".join(lines)


def list_tables(comparison: HumanComparison) -> dict[str, list[tuple[str, Agreement]]]:
    """The rows of every table by its title: models and controls, then the models by groups."""
    overall: list[tuple[str, Agreement]] = []
    tables = {"": overall, "by annotator": [], "by K*": [], "by answer type": []}
    for model in comparison.models:
        name = model.attention.name
        overall += [
            (name, model.overall),
            ("  against another question's map", model.another_question),
        ]
        for title, prefix, groups in (
            ("by annotator", "annotator ", model.by_annotator),
            ("by K*", "K* = ", model.by_num_components),
            ("by answer type", "", model.by_answer_type),
        ):
            tables[title] += [(f"{name}, {prefix}{group}", each) for group, each in groups.items()]
    overall += [(CONTROLS[name], each) for name, each in comparison.controls.items()]
    return tables


def format_rows(title: str, rows: Sequence[tuple[str, Agreement]]) -> list[str]:
    """A table of agreements."""
    lines = [[title, "JS bits", "95 %", "JS nats", "distance", "Spearman", "95 %", "maps"]]
    for name, each in rows:
        lines.append(
            [name, *show(each.divergence_bits), *show(each.divergence_nats)[:1],
             *show(each.distance_bits)[:1], *show(each.spearman), f"{each.maps:,}"]
        )  # fmt: skip
    return align(lines, (7, 14, 7, 8, 8, 14, 6))


def format_paired(paired: Sequence[Paired]) -> list[str]:
    """Differences between models, map by map."""
    lines = [["difference, map by map", "JS bits", "95 %", "Spearman", "95 %"]]
    for each in paired:
        bits, spearman = each.difference.divergence_bits, each.difference.spearman
        lines.append([f"{each.first} − {each.second}", *show(bits), *show(spearman)])
    return align(lines, (7, 16, 8, 16))


def align(lines: Sequence[Sequence[str]], widths: Sequence[int]) -> list[str]:
    """Each name and its cells, in columns."""
    longest = max(len(name) for name, *_ in lines)
    return [
        "  ".join([f"{name:{longest}}", *(f"{c:>{w}}" for c, w in zip(cells, widths, strict=True))])
        for name, *cells in lines
    ]


def show(estimate: Estimate) -> tuple[str, str]:
    """The mean, and the interval from low to high; dashes where a measure is not defined."""
    mean, low, high = (
        f"{round(value, 3) + 0.0:.3f}" if math.isfinite(value) else "–"  # + 0.0: no -0.000
        for value in (estimate.mean, estimate.low, estimate.high)
    )
    return mean, "–" if low == "–" else f"{low}…{high}"
