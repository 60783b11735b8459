"""The sweep as a figure: λ × k_max, the mean over seeds as colour and number, deviation below."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mcan.training.summary import mean_and_deviation
from scripts.sweep.results import Cell

COLUMN, LINE = 0.62, 0.55  # inches of a cell


def draw_heat_map(cells: Sequence[Cell], best: Cell, title: str, path: Path) -> None:
    """Write a PNG: one panel for each combination of what is swept beside k_max, λ and seeds."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    cells = [cell for cell in cells if cell.lam is not None]
    panels = list(dict.fromkeys(cell.others for cell in cells))
    lams = sorted({cell.lam for cell in cells if cell.lam is not None})
    sizes = sorted({cell.k_max for cell in cells})
    width = max(6.0, 2.4 + COLUMN * len(lams))
    height = 1.0 + len(panels) * (1.1 + LINE * len(sizes))
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(title)
    means = [cell.mean for cell in cells]
    low, high = min(means), max(means)
    all_axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for axes, others in zip(all_axes, panels, strict=True):
        own = [cell for cell in cells if cell.others == others]
        picture = draw_panel(axes, own, lams, sizes, (low, high if high > low else low + 1))
        axes.set_title(", ".join(others), fontsize=10)
        if best in own:
            corner = (lams.index(best.lam) - 0.5, sizes.index(best.k_max) - 0.5)  # type: ignore[arg-type]
            frame = Rectangle(
                corner, 1, 1, fill=False, edgecolor="#D55E00", linewidth=2.5, zorder=3
            )
            axes.add_patch(frame)
    all_axes[-1].set_xlabel("λ, penalty per component")
    figure.colorbar(picture, ax=list(all_axes), label="accuracy (%), mean over seeds", shrink=0.9)
    figure.savefig(path, format="png", dpi=110)


def draw_panel(
    axes: Any,
    cells: Sequence[Cell],
    lams: Sequence[float],
    sizes: Sequence[int],
    limits: tuple[float, float],
) -> Any:
    """One heat map; what was not measured stays white."""
    table = np.full((len(sizes), len(lams)), np.nan)
    for cell in cells:
        assert cell.lam is not None
        place = sizes.index(cell.k_max), lams.index(cell.lam)
        table[place] = cell.mean
        share = (cell.mean - limits[0]) / (limits[1] - limits[0])
        axes.text(
            place[1],
            place[0],
            mean_and_deviation(cell.accuracies).replace(" ±", "\n±"),
            ha="center",
            va="center",
            fontsize=8,
            color="black" if share > 0.55 else "white",
        )
    picture = axes.imshow(
        table, cmap="viridis", vmin=limits[0], vmax=limits[1], aspect="auto", origin="lower"
    )
    axes.set_xticks(range(len(lams)), [f"{lam:g}" for lam in lams])
    axes.set_yticks(range(len(sizes)), [str(size) for size in sizes])
    axes.set_ylabel("k_max")
    return picture
