"""The comparison with people as lines for a screen."""

import math
from collections.abc import Sequence

from data.human_attention.agreement import Agreement, Paired
from data.human_attention.bootstrap import Estimate
from data.human_attention.comparison import HumanComparison

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
        lines += ["", *format_paired(comparison.paired)]
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
    lines = [HEADER]
    for _, each in rows:
        bits, nats, distance, spearman = each.measures.values()
        lines.append(
            (show(bits.mean), show_interval(bits), show(nats.mean), show(distance.mean),
             show(spearman.mean), show_interval(spearman), f"{each.num_maps:,}")
        )  # fmt: skip
    return align([title, *(name for name, _ in rows)], lines, WIDTHS)


def format_paired(paired: Sequence[Paired]) -> list[str]:
    """Differences between models, map by map."""
    names = [f"{each.first} − {each.second}" for each in paired]
    lines = [("JS bits", "95 %", "Spearman", "95 %")]
    for each in paired:
        bits, spearman = each.measures["divergence_bits"], each.measures["spearman"]
        lines.append(
            (show(bits.mean), show_interval(bits), show(spearman.mean), show_interval(spearman))
        )
    return align(["difference, map by map", *names], lines, (7, 16, 8, 16))


def align(names: Sequence[str], lines: Sequence[Sequence[str]], widths: Sequence[int]) -> list[str]:
    """Each name and its cells, in columns."""
    longest = max(map(len, names))
    return [
        "  ".join([f"{name:{longest}}", *(f"{c:>{w}}" for c, w in zip(cells, widths, strict=True))])
        for name, cells in zip(names, lines, strict=True)
    ]


def show(value: float) -> str:
    """Three decimals; a dash where a measure is not defined."""
    return (
        f"{round(value, 3) + 0.0:.3f}" if math.isfinite(value) else "–"
    )  # + 0.0 turns -0.0 into 0.0


def show_interval(estimate: Estimate) -> str:
    """From low to high."""
    return f"{show(estimate.low)}…{show(estimate.high)}" if math.isfinite(estimate.low) else "–"
