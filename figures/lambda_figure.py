"""The λ table as a figure: accuracy above, shares of K* below, both against λ."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mcan.evaluation.lambda_selection import Pick, Row

# Okabe and Ito's colours, which colour-blind readers can tell apart, in an order of contrast.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", "--", "-.", ":", "-", "--", "-.")  # lines that coincide still show each other
HATCHES = ("", "///", "...", "xx", "\\\\\\", "++", "oo")


def draw_lambda_figure(rows: Sequence[Row], picks: Sequence[Pick], title: str, path: Path) -> None:
    """Write a PNG; λ = 0 stands apart at the left, because a logarithm has no place for it."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    k_max = max(row.k_max for row in rows)
    lams = sorted({row.lam for row in rows})
    figure = Figure(figsize=(8, 7), layout="constrained")
    FigureCanvasAgg(figure)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    figure.suptitle(title)
    for size in range(1, k_max + 1):
        of_size = {row.lam: row.accuracy for row in rows if row.k_max == size}
        style = {"color": COLORS, "marker": MARKERS, "linestyle": LINES}
        chosen = {name: values[(size - 1) % len(values)] for name, values in style.items()}
        plot_line(above, lams, [of_size[lam] for lam in lams], label=f"k_max = {size}", **chosen)
    above.set_ylabel("accuracy (%)")
    stack_shares(below, lams, [row for row in rows if row.k_max == k_max])
    below.set_ylabel(f"share of K* (%), k_max = {k_max}")
    below.set_ylim(0, 100)
    mark_pick([above, below], picks[-1], lams)
    above.legend()
    below.legend(loc="upper center", bbox_to_anchor=(0.5, 1.16), ncols=k_max, frameon=False)
    scale_axis(below, lams)
    for axes in (above, below):
        axes.grid(alpha=0.3)
    figure.savefig(path, format="png", dpi=110)


def places(lams: Sequence[float]) -> list[float]:
    """Where each λ is drawn; λ = 0 goes left of the smallest positive λ, across a gap."""
    zero = min((lam for lam in lams if lam > 0), default=2.0) / 2
    return [lam if lam > 0 else zero for lam in lams]


def plot_line(axes: Any, lams: Sequence[float], values: Sequence[float], **style: str) -> None:
    """A line over the positive λ, and a mark of its own for λ = 0."""
    first = sum(lam == 0 for lam in lams)
    spots = places(lams)
    axes.plot(spots[first:], values[first:], markersize=3.5, linewidth=1.5, **style)
    if first:
        del style["label"]
        axes.plot(spots[:1], values[:1], markersize=6, **style)


def stack_shares(axes: Any, lams: Sequence[float], rows: Sequence[Row]) -> None:
    """Areas that add up to 100 %; a bar for λ = 0, and for a λ that is alone."""
    of_lam = {row.lam: row.component_shares for row in rows}
    positive = [lam for lam in lams if lam > 0]
    line = positive if len(positive) > 1 else []
    bars = [lam for lam in lams if lam not in line]
    spots = dict(zip(lams, places(lams), strict=True))
    for k in range(len(rows[0].component_shares)):
        style: dict[str, Any] = {"edgecolor": "white", "linewidth": 0}
        style |= {"facecolor": COLORS[k % len(COLORS)], "hatch": HATCHES[k % len(HATCHES)]}
        below = [sum(of_lam[lam][:k]) for lam in line]
        above = [sum(of_lam[lam][: k + 1]) for lam in line]
        axes.fill_between(line, below, above, label=f"K* = {k + 1}", **style)
        for lam in bars:
            spot, low = spots[lam], sum(of_lam[lam][:k])
            axes.bar(spot, of_lam[lam][k], width=0.3 * spot, bottom=low, **style)


def mark_pick(panels: Sequence[Any], pick: Pick, lams: Sequence[float]) -> None:
    """A line at the λ that was picked, and a band over those that the folds picked."""
    if pick.lam is None:
        return
    where = dict(zip(lams, places(lams), strict=True))
    low, high = where[min(pick.lam_of_folds)], where[max(pick.lam_of_folds)]
    for axes in panels:
        label = "picked in the folds" if axes is panels[0] and low < high else "_"
        axes.axvspan(low, high, color="0.5", alpha=0.25, linewidth=0, label=label)
        axes.axvline(where[pick.lam], color="0.2", linestyle="--", linewidth=1)
    # on the side where there is room: a label at the right end would leave the panel
    at_right = where[pick.lam] ** 2 > where[lams[0]] * where[lams[-1]]
    panels[0].annotate(
        f"picked λ = {pick.lam:g}",
        (where[pick.lam], 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(-4 if at_right else 4, -12),
        textcoords="offset points",
        horizontalalignment="right" if at_right else "left",
        fontsize=9,
    )


def scale_axis(axes: Any, lams: Sequence[float]) -> None:
    """A logarithmic axis with plain numbers, and a 0 where λ = 0, the first, is drawn."""
    from matplotlib.ticker import NullLocator

    axes.set_xscale("log")
    positive = [lam for lam in lams if lam > 0]
    decades = [10.0**power * step for power in range(-6, 7) for step in (1, 2, 5)]
    ticks = [lam for lam in decades if positive and min(positive) <= lam <= max(positive)]
    labels = [f"{lam:g}" for lam in ticks]
    if 0 in lams:
        ticks, labels = [places(lams)[0], *ticks], ["0", *labels]
    axes.set_xticks(ticks, labels)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("λ, the penalty per component (λ = 0 stands apart)")
