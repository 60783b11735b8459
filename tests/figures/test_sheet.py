"""Whole figures: nothing stretched, nothing cut off, nothing over something else."""

import warnings
from itertools import combinations

import numpy as np
import pytest
from matplotlib.patches import Ellipse
from matplotlib.text import Text

from figures.heat import blend
from figures.panel import Panel
from figures.sheet import Sheet, draw_sheet, save_figure
from tests.figures.sample_panels import NASTY, make_cells, make_mixture, make_photo, make_sheet

SHAPES = [(60, 90), (90, 60), (64, 64), (30, 200), (200, 30)]


@pytest.fixture(scope="module", params=SHAPES, ids=str)
def drawn(request):
    """A figure of a photo of that shape, laid out as it will be written."""
    sheet = make_sheet(*request.param, question=NASTY)
    figure = draw_sheet(sheet)
    figure.canvas.draw()
    return sheet, figure


def shown_texts(figure):
    """The texts of the figure itself: heading, titles, notes, caption, footer."""
    return [text for text in figure.findobj(Text) if text.get_text() and text.figure is not None]


def extent(text):
    return text.get_window_extent()


def test_a_photo_keeps_its_shape(drawn):
    sheet, figure = drawn
    height, width = sheet.photo.shape[:2]
    assert len(figure.axes) == len(sheet.panels) + 1  # and the colours
    for axes in figure.axes[:-1]:
        box = axes.get_window_extent()
        assert box.width / box.height == pytest.approx(width / height, rel=1e-6)
        assert tuple(axes.images[0].get_extent()) == (0, width, height, 0)


def test_nothing_leaves_the_figure_and_no_text_covers_another(drawn):
    _, figure = drawn
    texts = [text for text in shown_texts(figure) if text.axes is None]
    ticks = [label for label in figure.axes[-1].get_xticklabels() if label.get_text()]
    boxes = [extent(text) for text in [*texts, *ticks]]
    whole = figure.bbox
    for text, box in zip([*texts, *ticks], boxes, strict=True):
        assert box.x0 >= 0, text
        assert box.x1 <= whole.x1, text
        assert box.y0 >= 0, text
        assert box.y1 <= whole.y1, text
    for (one, first), (other, second) in combinations(zip(texts, boxes, strict=False), 2):
        across = min(first.x1, second.x1) - max(first.x0, second.x0)
        down = min(first.y1, second.y1) - max(first.y0, second.y0)
        # the boxes of neighbouring lines touch, letters do not
        assert across <= 0 or down <= 2.5, (one.get_text(), other.get_text())


def test_no_text_lies_on_a_panel_but_the_mixing_weights(drawn):
    _, figure = drawn
    for text in shown_texts(figure):
        if text.axes is not None:
            continue
        box = extent(text)
        for axes in figure.axes:
            panel = axes.get_window_extent()
            across = min(box.x1, panel.x1) - max(box.x0, panel.x0)
            down = min(box.y1, panel.y1) - max(box.y0, panel.y0)
            assert across <= 0 or down <= 1, text.get_text()


@pytest.mark.parametrize("kind", ["png", "pdf"])
def test_odd_characters_are_text_and_not_mathematics(kind, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # such as a glyph that the font lacks
        figure = draw_sheet(make_sheet(question=NASTY))
        save_figure(figure, tmp_path / "figure", kind, 60)
    heading = " ".join(text.get_text() for text in figure.texts[:2])
    assert "$5 and $x^2$ or \\frac{1}{2}_a & <script>" in heading


def test_what_is_drawn_is_the_density_at_every_pixel_over_the_photo():
    photo, mixture, cells = make_photo(40, 70), make_mixture(3), make_cells()
    panels = (Panel("image"), Panel("a", mixture=mixture), Panel("b", cells))
    figure = draw_sheet(Sheet(photo, "?", panels))
    image, density, weights = (axes.images[0].get_array() for axes in figure.axes[:3])
    assert np.array_equal(image, photo)
    assert np.array_equal(density, blend(photo, mixture.at_pixels(40, 70)))
    rows, columns = np.arange(40) * 8 // 40, np.arange(70) * 10 // 70
    assert np.array_equal(weights, blend(photo, cells[rows][:, columns]))


def test_a_mixture_has_dots_at_its_means_two_ellipses_each_and_its_weights():
    mixture = make_mixture(3)
    axes = draw_sheet(Sheet(make_photo(40, 70), "?", (Panel("a", mixture=mixture),))).axes[0]
    dots = next(line for line in axes.lines if line.get_marker() == "o")
    np.testing.assert_allclose(dots.get_xydata(), mixture.mu[:, ::-1] * (70, 40))
    assert dots.get_color() == "black"
    ellipses = [patch for patch in axes.patches if isinstance(patch, Ellipse)]
    assert len(ellipses) == 6
    for k in range(3):
        one, two = ellipses[2 * k : 2 * k + 2]
        assert (two.width, two.height) == pytest.approx((2 * one.width, 2 * one.height))
        assert (one.width, one.angle) == (
            mixture.outline(k, 40, 70, 1).width,
            mixture.outline(k, 40, 70, 1).angle,
        )
    weights = sorted(text.get_text() for text in axes.texts)
    assert weights == sorted(f"{pi:.2f}" for pi in mixture.pi)


def test_more_panels_than_fit_side_by_side_go_into_rows_of_one_size():
    panels = tuple(Panel(f"K = {k}", mixture=make_mixture(1)) for k in range(9))
    figure = draw_sheet(Sheet(make_photo(), "?", panels))
    boxes = [axes.get_window_extent() for axes in figure.axes[:9]]
    assert len({round(box.y0) for box in boxes}) == 2
    assert len({round(box.width) for box in boxes}) == 1


@pytest.mark.parametrize("kind", ["png", "pdf"])
def test_the_same_figure_gives_the_same_bytes(kind, tmp_path):
    for name in ("one", "other"):
        save_figure(draw_sheet(make_sheet()), tmp_path / name, kind, 50)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_a_users_matplotlibrc_changes_nothing_and_is_not_changed(tmp_path):
    import matplotlib

    save_figure(draw_sheet(make_sheet()), tmp_path / "one", "png", 50)
    with matplotlib.rc_context({"figure.facecolor": "black", "font.family": "serif"}):
        save_figure(draw_sheet(make_sheet()), tmp_path / "other", "png", 50)
        assert matplotlib.rcParams["figure.facecolor"] == "black"
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
