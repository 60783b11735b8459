"""One panel of a figure: a photo, the attention over it, and what is written beside it."""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Ellipse
from matplotlib.patheffects import withStroke

from figures.gaussians import Gaussians
from figures.heat import blend, spread_cells
from figures.labels import place_labels
from figures.lettering import measure

LABEL_SIZE = 7.0  # points, as all sizes here
DOT = 5.0
MARK = "#0072b2"  # a blue that all readers tell from the heat
PAPER = "#ffffff"
LEAST_SHOWN = 0.005  # a mixing weight below it is written as <0.01


@dataclass(frozen=True)
class Panel:
    """Attention as weights of cells (h, w), or as a mixture, or none: the photo alone.

    `smooth` draws cells without their borders, as suits a map that has no cells.
    """

    title: str
    cells: np.ndarray | None = None
    mixture: Gaussians | None = None
    notes: tuple[str, ...] = ()  # lines below the panel
    is_marked: bool = False
    smooth: bool = False

    def heat(self, height: int, width: int) -> np.ndarray | None:
        """(H, W): the attention at every pixel, on any scale."""
        if self.mixture is not None:
            return self.mixture.at_pixels(height, width)
        if self.cells is not None:
            return spread_cells(self.cells, height, width, self.smooth)
        return None


def draw_panel(axes: Axes, panel: Panel, photo: np.ndarray, width: float) -> None:
    """Draw a panel on axes that have the photo's shape and are `width` points wide."""
    rows, columns = photo.shape[:2]
    heat = panel.heat(rows, columns)
    picture = photo if heat is None else blend(photo, heat)
    # a pixel covers a unit square, so that (0, 0) is the photo's corner and not a pixel's centre
    axes.imshow(picture, extent=(0, columns, rows, 0), aspect="auto", interpolation="auto")
    axes.set(xlim=(0, columns), ylim=(rows, 0), xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set(linewidth=2.5 if panel.is_marked else 0.6)
        spine.set_edgecolor(MARK if panel.is_marked else "#555555")
    if panel.mixture is not None:
        draw_mixture(axes, panel.mixture, rows, columns, columns / width)


def draw_mixture(
    axes: Axes, mixture: Gaussians, height: int, width: int, pixels_per_point: float
) -> None:
    """Ellipses at one and two σ, black dots at the means, mixing weights beside them."""
    for k in range(len(mixture.pi)):
        for deviations, line in ((1, "-"), (2, (0, (4, 2)))):
            at = mixture.outline(k, height, width, deviations)
            axes.add_patch(
                Ellipse(
                    (at.x, at.y),
                    at.width,
                    at.height,
                    angle=at.angle,
                    fill=False,
                    edgecolor=PAPER,
                    linewidth=0.9,
                    linestyle=line,
                    path_effects=[withStroke(linewidth=2.0, foreground="#000000a0")],
                )
            )
    centres = mixture.centres(height, width)
    axes.plot(
        *centres.T, "o", markersize=DOT, color="black", markeredgecolor=PAPER, markeredgewidth=0.8,
        clip_on=False,
    )  # fmt: skip
    draw_weights(axes, mixture.pi, centres / pixels_per_point, height, width, pixels_per_point)


def name_weight(pi: float) -> str:
    """A mixing weight as it is written."""
    return "<0.01" if pi < LEAST_SHOWN else f"{pi:.2f}"


def draw_weights(
    axes: Axes,
    weights: np.ndarray,
    points: np.ndarray,
    height: int,
    width: int,
    pixels_per_point: float,
) -> None:
    """Write the mixing weights beside the means (K, 2), given in points, with a line to each."""
    texts = [name_weight(pi) for pi in weights]
    order = np.argsort(-weights, kind="stable")  # the heaviest gets the nearest place
    boxes = place_labels(
        [(float(x), float(y)) for x, y in points[order]],
        [(measure(texts[k], LABEL_SIZE) + 4, LABEL_SIZE + 3) for k in order],
        width / pixels_per_point,
        height / pixels_per_point,
        DOT + 1,
    )
    for k, box in zip(order, boxes, strict=True):
        x, y = box.x * pixels_per_point, box.y * pixels_per_point
        axes.plot(
            [points[k, 0] * pixels_per_point, x],
            [points[k, 1] * pixels_per_point, y],
            color=PAPER,
            linewidth=0.6,
            zorder=1.9,
        )
        axes.text(
            x,
            y,
            texts[k],
            size=LABEL_SIZE,
            color="black",
            ha="center",
            va="center_baseline",
            bbox={"boxstyle": "round,pad=0.15", "facecolor": PAPER, "alpha": 0.85, "linewidth": 0},
            zorder=4,
        )
