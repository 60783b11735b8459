"""A whole figure: the question above, panels side by side, the caption and the colours below."""

from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from figures.drawing.heat import GAMMA, dim, shade
from figures.drawing.panel import MARK, Panel, draw_panel
from figures.drawing.text import FAMILY, measure, wrap

# All lengths are points, 1/72 inch, counted from the upper left corner.
SIDE = 210.0  # the longer side of a panel
NARROWEST = 132.0  # of a column: a title must fit
GAP, MARGIN = 10.0, 10.0
HEADING, TITLE, TEXT, SMALL = 11.0, 9.0, 8.0, 6.5  # sizes of letters
LINE = 1.35  # from line to line, in sizes
MOST_COLUMNS = 5
BAR = (90.0, 7.0)  # the colour scale
BAR_TITLE = "share of the peak"
STYLE: Any = {  # beside matplotlib's own defaults, whatever the user's matplotlibrc says
    "font.family": FAMILY,
    "text.parse_math": False,  # a question may hold dollar signs
    "pdf.fonttype": 42,  # text stays text
}


@dataclass(frozen=True)
class FigureContent:
    """What a figure shows: a photo (H, W, 3) uint8, the panels over it, and its texts."""

    photo: np.ndarray
    heading: str
    panels: tuple[Panel, ...]
    caption: tuple[str, ...] = ()
    footer: str = ""


class Layout:
    """Where everything goes, from the shape of the photo and the lengths of the texts."""

    def __init__(self, content: FigureContent) -> None:
        height, width = content.photo.shape[:2]
        scale = SIDE / max(height, width)
        self.panel_width, self.panel_height = width * scale, height * scale
        self.column = max(self.panel_width, NARROWEST)
        count = len(content.panels)
        num_rows = -(-count // MOST_COLUMNS)
        self.num_columns = -(-count // num_rows)
        self.inner = max(self.num_columns * (self.column + GAP) - GAP, 2 * NARROWEST + GAP)
        self.heading = wrap(content.heading, self.inner, HEADING, bold=True)
        self.titles = [
            wrap(panel.title, self.column, TITLE, bold=True, most=2) for panel in content.panels
        ]
        self.notes = [
            [line for note in panel.notes for line in wrap(note, self.column, TEXT, most=2)]
            for panel in content.panels
        ]
        self.caption = [
            line for text in content.caption for line in wrap(text, self.inner, TEXT, most=3)
        ]
        room = self.inner - BAR[0] - measure(BAR_TITLE, SMALL) - 3 * GAP
        self.footer = wrap(content.footer, room, SMALL, most=2)
        self.row_tops: list[float] = []  # of the panels, below their titles
        top = MARGIN + len(self.heading) * HEADING * LINE + 4
        for row in range(num_rows):
            columns = slice(row * self.num_columns, (row + 1) * self.num_columns)
            top += max(map(len, self.titles[columns])) * TITLE * LINE + 3
            self.row_tops.append(top)
            top += self.panel_height + 4
            top += max(map(len, self.notes[columns])) * TEXT * LINE + 6
        self.caption_top = top
        self.footer_top = top + len(self.caption) * TEXT * LINE + 4
        self.width = self.inner + 2 * MARGIN
        self.height = self.footer_top + max(BAR[1] + SMALL, 2 * SMALL) * LINE + MARGIN


class Canvas:
    """A matplotlib figure on which places are given in points from the upper left corner."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self.figure = Figure(figsize=(width / 72, height / 72))
        FigureCanvasAgg(self.figure)

    def add_axes(self, left: float, top: float, width: float, height: float) -> Axes:
        """Axes of this size."""
        place = (left / self.width, (self.height - top - height) / self.height)
        return self.figure.add_axes((*place, width / self.width, height / self.height))

    def write(self, lines: list[str], left: float, top: float, size: float, **font: Any) -> None:
        """Lines of text, one below the other."""
        for number, line in enumerate(lines):
            y = self.height - top - (number + 0.5) * size * LINE
            place = (left / self.width, y / self.height)
            self.figure.text(*place, line, size=size, va="center_baseline", **font)


def draw_figure(content: FigureContent) -> Figure:
    """Draw it all; `save_figure` writes it."""
    with style.context(STYLE, after_reset=True):
        layout = Layout(content)
        canvas = Canvas(layout.width, layout.height)
        canvas.write(layout.heading, MARGIN, MARGIN, HEADING, weight="bold")
        for number, panel in enumerate(content.panels):
            place_panel(canvas, layout, number, panel, content.photo)
        canvas.write(layout.caption, MARGIN, layout.caption_top, TEXT)
        canvas.write(layout.footer, MARGIN, layout.footer_top, SMALL, color="#666666")
        if any(panel.cells is not None or panel.mixture is not None for panel in content.panels):
            draw_scale(canvas, layout.footer_top)
    return canvas.figure


def place_panel(
    canvas: Canvas, layout: Layout, number: int, panel: Panel, photo: np.ndarray
) -> None:
    """A panel in its column, its title above and its notes below."""
    row, column = divmod(number, layout.num_columns)
    left = MARGIN + column * (layout.column + GAP) + (layout.column - layout.panel_width) / 2
    middle = left + layout.panel_width / 2
    top = layout.row_tops[row]
    title, color = layout.titles[number], MARK if panel.is_marked else "black"
    above = top - 3 - len(title) * TITLE * LINE
    canvas.write(title, middle, above, TITLE, ha="center", weight="bold", color=color)
    axes = canvas.add_axes(left, top, layout.panel_width, layout.panel_height)
    draw_panel(axes, panel, photo, layout.panel_width)
    below = top + layout.panel_height + 4
    canvas.write(layout.notes[number], middle, below, TEXT, ha="center")


def draw_scale(canvas: Canvas, top: float) -> None:
    """The colours, over the grey of an average photo, with the share of the peak they stand for."""
    left = canvas.width - MARGIN - BAR[0] - GAP
    axes = canvas.add_axes(left, top, *BAR)
    beside = left - GAP / 2 - measure(BAR_TITLE, SMALL)
    canvas.write([BAR_TITLE], beside, top, SMALL, color="#444444")
    shaded = shade(np.linspace(0, 1, 256))[None]
    grey = dim(np.full((1, 1, 3), 128, np.uint8))
    colors = shaded[..., 3:] * shaded[..., :3] + (1 - shaded[..., 3:]) * grey
    axes.imshow(colors, extent=(0, 1, 0, 1), aspect="auto")
    shares = np.array([0, 0.1, 0.5, 1])
    axes.set_xticks(shares**GAMMA, ["0", "10", "50", "100 %"])
    axes.set_yticks([])
    axes.tick_params(labelsize=SMALL, length=2, width=0.5, pad=1.5, colors="#444444")
    for spine in axes.spines.values():
        spine.set(linewidth=0.5, edgecolor="#444444")


def save_figure(figure: Figure, file: Path | IO[bytes], kind: str, dpi: int) -> None:
    """Write a figure as "png" or "pdf"; the same figure gives the same bytes.

    A PDF holds every pixel of the photo and of the heat; in a PNG they are averaged to `dpi`.
    """
    for axes in figure.axes:
        for image in axes.images:
            image.set_interpolation("none" if kind == "pdf" else "auto")
    with style.context(STYLE, after_reset=True):
        metadata = {"CreationDate": None} if kind == "pdf" else {"Software": None}
        figure.savefig(file, format=kind, dpi=dpi, metadata=metadata)
