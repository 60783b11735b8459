"""A whole figure: the question above, panels side by side, the caption and the colours below."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from figures.heat import GAMMA, dim, shade
from figures.lettering import FAMILY, cut, measure, printable, wrap
from figures.panel import MARK, Panel, draw_panel

# All lengths are points, 1/72 inch, counted from the upper left corner.
SIDE = 210.0  # the longer side of a panel
NARROWEST = 132.0  # of a column: a title must fit
GAP, MARGIN = 10.0, 10.0
HEADING, TITLE, TEXT, SMALL = 11.0, 9.0, 8.0, 6.5  # sizes of letters
LINE = 1.35  # from line to line, in sizes
MOST_COLUMNS = 5
BAR = (90.0, 7.0)  # the colour scale
BAR_TITLE = "share of the peak"
SETTINGS: Any = {
    "font.family": FAMILY,
    "text.parse_math": False,  # a question may hold dollar signs
    "pdf.fonttype": 42,  # text stays text
}


@dataclass(frozen=True)
class Sheet:
    """What a figure shows: a photo (H, W, 3) uint8, and the panels over it."""

    photo: np.ndarray
    heading: str
    panels: tuple[Panel, ...]
    caption: tuple[str, ...] = ()
    footer: str = ""


class Layout:
    """Where everything goes, from the shape of the photo and the lengths of the texts."""

    def __init__(self, sheet: Sheet) -> None:
        height, width = sheet.photo.shape[:2]
        scale = SIDE / max(height, width)
        self.panel_width, self.panel_height = width * scale, height * scale
        self.column = max(self.panel_width, NARROWEST)
        count = len(sheet.panels)
        num_rows = -(-count // MOST_COLUMNS)
        self.num_columns = -(-count // num_rows)
        self.inner = max(self.num_columns * (self.column + GAP) - GAP, 2 * NARROWEST + GAP)
        self.heading = wrap(sheet.heading, self.inner, HEADING, bold=True)
        self.notes = [
            [line for note in panel.notes for line in wrap(note, self.column, TEXT, most=2)]
            for panel in sheet.panels
        ]
        self.caption = [
            line for text in sheet.caption for line in wrap(text, self.inner, TEXT, most=3)
        ]
        room = self.inner - BAR[0] - measure(BAR_TITLE, SMALL) - 3 * GAP
        self.footer = wrap(sheet.footer, room, SMALL, most=2)
        self.row_tops: list[float] = []
        top = MARGIN + len(self.heading) * HEADING * LINE + 4
        for row in range(num_rows):
            self.row_tops.append(top)
            notes = self.notes[row * self.num_columns : (row + 1) * self.num_columns]
            top += TITLE * LINE + 3 + self.panel_height + 4
            top += max(map(len, notes)) * TEXT * LINE + 6
        self.caption_top = top
        self.footer_top = top + len(self.caption) * TEXT * LINE + 4
        self.width = self.inner + 2 * MARGIN
        self.height = self.footer_top + max(BAR[1] + SMALL, 2 * SMALL) * LINE + MARGIN


@contextlib.contextmanager
def house_style() -> Iterator[None]:
    """Figures look alike whatever the user's matplotlibrc says."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        yield


def draw_sheet(sheet: Sheet) -> Figure:
    """Draw it all; `save_figure` writes it."""
    with house_style():
        layout = Layout(sheet)
        figure = Figure(figsize=(layout.width / 72, layout.height / 72))
        FigureCanvasAgg(figure)
        write_lines(figure, layout, layout.heading, MARGIN, MARGIN, HEADING, weight="bold")
        for number, panel in enumerate(sheet.panels):
            place_panel(figure, layout, sheet, number, panel)
        write_lines(figure, layout, layout.caption, MARGIN, layout.caption_top, TEXT)
        write_lines(
            figure, layout, layout.footer, MARGIN, layout.footer_top, SMALL, color="#666666"
        )
        if any(panel.cells is not None or panel.mixture is not None for panel in sheet.panels):
            draw_scale(figure, layout)
    return figure


def place_panel(figure: Figure, layout: Layout, sheet: Sheet, number: int, panel: Panel) -> None:
    """A panel in its column, its title above and its notes below."""
    row, column = divmod(number, layout.num_columns)
    left = MARGIN + column * (layout.column + GAP) + (layout.column - layout.panel_width) / 2
    middle = left + layout.panel_width / 2
    top = layout.row_tops[row]
    title = [cut(printable(panel.title), layout.column, TITLE, True)]
    color = MARK if panel.is_marked else "black"
    write_lines(figure, layout, title, middle, top, TITLE, ha="center", weight="bold", color=color)
    top += TITLE * LINE + 3
    axes = add_axes(figure, layout, left, top, layout.panel_width, layout.panel_height)
    draw_panel(axes, panel, sheet.photo, layout.panel_width)
    below = top + layout.panel_height + 4
    write_lines(figure, layout, layout.notes[number], middle, below, TEXT, ha="center")


def draw_scale(figure: Figure, layout: Layout) -> None:
    """The colours, over the grey of an average photo, with the share of the peak they stand for."""
    left = layout.width - MARGIN - BAR[0] - GAP
    axes = add_axes(figure, layout, left, layout.footer_top, *BAR)
    beside = left - GAP / 2 - measure(BAR_TITLE, SMALL)
    write_lines(figure, layout, [BAR_TITLE], beside, layout.footer_top, SMALL, color="#444444")
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


def add_axes(
    figure: Figure, layout: Layout, left: float, top: float, width: float, height: float
) -> matplotlib.axes.Axes:
    """Axes at a place given in points from the upper left corner."""
    bottom = layout.height - top - height
    place = (left / layout.width, bottom / layout.height)
    return figure.add_axes((*place, width / layout.width, height / layout.height))


def write_lines(
    figure: Figure,
    layout: Layout,
    lines: list[str],
    left: float,
    top: float,
    size: float,
    **style: str,
) -> None:
    """Lines of text, one below the other."""
    for number, line in enumerate(lines):
        y = layout.height - top - (number + 0.5) * size * LINE
        place = (left / layout.width, y / layout.height)
        figure.text(*place, line, size=size, va="center_baseline", **style)  # type: ignore[arg-type]


def save_figure(figure: Figure, path: Path, kind: str, dpi: int) -> None:
    """Write a figure as "png" or "pdf"; the same figure gives the same bytes.

    A PDF holds every pixel of the photo and of the heat; in a PNG they are averaged to `dpi`.
    """
    for axes in figure.axes:
        for image in axes.images:
            image.set_interpolation("none" if kind == "pdf" else "auto")
    with house_style():
        metadata = {"CreationDate": None} if kind == "pdf" else {"Software": None}
        figure.savefig(path, format=kind, dpi=dpi, metadata=metadata)
