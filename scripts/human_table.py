"""The comparison with people as lines for a screen."""

import math

from data.agreement import Agreement
from data.bootstrap import Estimate
from data.human_comparison import HumanComparison

CONTROLS = {
    "uniform": "uniform attention",
    "centre": "centre: mean map of other images",
    "another_person": "another person's map",
}
HEADER = ("JS bits", "95 %", "JS nats", "distance", "Spearman", "95 %", "maps")
WIDTHS = (7, 14, 7, 8, 8, 14, 6)


def format_comparison(comparison: HumanComparison) -> str:
    """All tables, one after the other."""
    lines = [*introduce(comparison), ""]
    rows = [
        row
        for model in comparison.models
        for row in (
            (model.attention.name, model.overall),
            ("  against another question's map", model.another_question),
        )
    ]
    rows += [(CONTROLS[name], each) for name, each in comparison.controls.items()]
    lines += format_rows("", rows)
    for title, groups in list_groups(comparison).items():
        lines += ["", *format_rows(title, groups)]
    if comparison.paired:
        lines += ["", *format_paired(comparison)]
    return "\n".join(lines)


def introduce(comparison: HumanComparison) -> list[str]:
    """How many maps were compared, and how many could not be."""
    summary = comparison.to_json()
    return [
        f"{summary['maps']:,} maps that people made of {summary['questions']:,} questions about "
        f"{summary['images']:,} images; {summary['black_maps_left_out']:,} black maps left out"
    ]


def list_groups(comparison: HumanComparison) -> dict[str, list[tuple[str, Agreement]]]:
    """The rows of the tables by annotator, K* and answer type."""
    tables: dict[str, list[tuple[str, Agreement]]] = {}
    for model in comparison.models:
        name = model.attention.name
        for title, prefix, groups in (
            ("by annotator", "annotator ", model.by_annotator),
            ("by K*", "K* = ", model.by_num_components),
            ("by answer type", "", model.by_answer_type),
        ):
            rows = [(f"{name}, {prefix}{group}", each) for group, each in groups.items()]
            tables.setdefault(title, []).extend(rows)
    return {title: rows for title, rows in tables.items() if rows}


def format_rows(title: str, rows: list[tuple[str, Agreement]]) -> list[str]:
    """A table of agreements."""
    width = max(len(title), *(len(name) for name, _ in rows))
    header = "  ".join(f"{word:>{size}}" for word, size in zip(HEADER, WIDTHS, strict=True))
    lines = [f"{title:{width}}  {header}"]
    for name, each in rows:
        cells = (
            show(each.divergence_bits.mean), show_interval(each.divergence_bits),
            show(each.divergence_nats.mean), show(each.distance_bits.mean),
            show(each.spearman.mean), show_interval(each.spearman), f"{each.num_maps:,}",
        )  # fmt: skip
        shown = "  ".join(f"{cell:>{size}}" for cell, size in zip(cells, WIDTHS, strict=True))
        lines.append(f"{name:{width}}  {shown}")
    return lines


def format_paired(comparison: HumanComparison) -> list[str]:
    """Differences between models, map by map."""
    names = [f"{each.first} − {each.second}" for each in comparison.paired]
    title = "difference, map by map"
    width = max(map(len, [title, *names]))
    lines = [f"{title:{width}}  {'JS bits':>7}  {'95 %':>16}  {'Spearman':>8}  {'95 %':>16}"]
    for name, each in zip(names, comparison.paired, strict=True):
        lines.append(
            f"{name:{width}}  {show(each.divergence_bits.mean):>7}  "
            f"{show_interval(each.divergence_bits):>16}  {show(each.spearman.mean):>8}  "
            f"{show_interval(each.spearman):>16}"
        )
    return lines


def show(value: float) -> str:
    """Three decimals; a dash where a measure is not defined."""
    return f"{round(value, 3) + 0.0:.3f}" if math.isfinite(value) else "–"  # no minus nought


def show_interval(estimate: Estimate) -> str:
    """From low to high."""
    return f"{show(estimate.low)}…{show(estimate.high)}" if math.isfinite(estimate.low) else "–"
