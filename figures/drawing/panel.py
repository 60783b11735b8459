"""One panel of a figure: a photo, the attention over it, and what is written beside it."""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Ellipse, Rectangle
from matplotlib.patheffects import withStroke

from figures.drawing.heat import blend, spread_cells
from figures.drawing.labels import Label, label_weights
from figures.drawing.mixture import DrawnMixture
from figures.drawing.regions import THICKEST, THINNEST, Regions

LABEL_SIZE = 7.0  # points, as all sizes here
DOT = 5.0
MARK = "#0072b2"  # a blue that all readers can distinguish from the heat
WHITE = "#ffffff"
LINES = ("-", (0, (4, 2)))  # of the first and the second outline of a component


@dataclass(frozen=True)
class Panel:
    """Attention as weights of cells (h, w), or as a mixture, or none: the photo alone.

    `smooth` draws cells without their borders, as suits a map that has no cells. `peak` is the
    heat at the end of the colour scale, for panels that share one; None: the panel's own. With
    `boxes` (h, 4) the cells are regions, which lie where the boxes do.
    """

    title: str
    cells: np.ndarray | None = None
    mixture: DrawnMixture | None = None
    notes: tuple[str, ...] = ()  # lines below the panel
    is_marked: bool = False
    smooth: bool = False
    peak: float | None = None
    boxes: np.ndarray | None = None

    @property
    def regions(self) -> Regions | None:
        """The weighted boxes; None where cells form a grid."""
        if self.boxes is None or self.cells is None:
            return None
        return Regions(self.cells.ravel(), self.boxes)

    def heat(self, height: int, width: int) -> np.ndarray | None:
        """(H, W): the attention at every pixel, on any scale."""
        if self.mixture is not None:
            return self.mixture.at_pixels(height, width)
        if self.regions is not None:
            return self.regions.at_pixels(height, width)
        if self.cells is not None:
            return spread_cells(self.cells, height, width, self.smooth)
        return None


def draw_panel(axes: Axes, panel: Panel, photo: np.ndarray, width: float) -> None:
    """Draw a panel on axes that have the photo's shape and are `width` points wide."""
    rows, columns = photo.shape[:2]
    heat = panel.heat(rows, columns)
    picture = photo if heat is None else blend(photo, heat, panel.peak)
    # a pixel covers a unit square, so that (0, 0) is the photo's corner and not a pixel's centre
    axes.imshow(picture, extent=(0, columns, rows, 0), aspect="auto", interpolation="auto")
    axes.set(xlim=(0, columns), ylim=(rows, 0), xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set(linewidth=2.5 if panel.is_marked else 0.6)
        spine.set_edgecolor(MARK if panel.is_marked else "#555555")
    if panel.mixture is not None:
        draw_mixture(axes, panel.mixture, rows, columns, columns / width)
    if panel.regions is not None:
        draw_regions(axes, panel.regions, rows, columns, columns / width)


def draw_mixture(
    axes: Axes, mixture: DrawnMixture, height: int, width: int, pixels_per_point: float
) -> None:
    """Outlines at one and two σ or at the edge, dots at the means, mixing weights beside them."""
    edge = withStroke(linewidth=2.0, foreground="#000000a0")
    for k in range(len(mixture.pi)):
        for deviations, line in zip(mixture.outlined_deviations, LINES, strict=False):
            at = mixture.outline(k, height, width, deviations)
            axes.add_patch(
                Ellipse(
                    (at.x, at.y), at.width, at.height, angle=at.angle, fill=False,
                    edgecolor=WHITE, linewidth=0.9, linestyle=line, path_effects=[edge],
                )
            )  # fmt: skip
    axes.plot(
        *mixture.centres(height, width).T, "o", markersize=DOT, color="black",
        markeredgecolor=WHITE, markeredgewidth=0.8, clip_on=False,
    )  # fmt: skip
    in_points = height / pixels_per_point, width / pixels_per_point
    for label in label_weights(mixture, *in_points, size=LABEL_SIZE, padding=4, dot=DOT + 1):
        draw_label(axes, label, pixels_per_point)


def draw_regions(
    axes: Axes, regions: Regions, height: int, width: int, pixels_per_point: float
) -> None:
    """The outlines of the heaviest boxes, thicker for more weight, and their weights."""
    edge = withStroke(linewidth=3.0, foreground="#000000a0")
    strongest = regions.strongest()
    for left, top, across, down, share in strongest.outlines(height, width):
        axes.add_patch(
            Rectangle(
                (left, top), across, down, fill=False, edgecolor=WHITE,
                linewidth=THINNEST + (THICKEST - THINNEST) * share, path_effects=[edge],
            )
        )  # fmt: skip
    in_points = height / pixels_per_point, width / pixels_per_point
    for label in strongest.labels(*in_points, size=LABEL_SIZE, padding=4):
        draw_label(axes, label, pixels_per_point)


def draw_label(axes: Axes, label: Label, pixels_per_point: float) -> None:
    """A mixing weight, with a line to its mean."""
    x, y = label.box.x * pixels_per_point, label.box.y * pixels_per_point
    axes.plot(
        [label.x * pixels_per_point, x], [label.y * pixels_per_point, y],
        color=WHITE, linewidth=0.6, zorder=1.9,
    )  # fmt: skip
    axes.text(
        x, y, label.text, size=LABEL_SIZE, color="black", ha="center", va="center_baseline",
        bbox={"boxstyle": "round,pad=0.15", "facecolor": WHITE, "alpha": 0.85, "linewidth": 0},
        zorder=4,
    )  # fmt: skip
