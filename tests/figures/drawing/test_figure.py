"""Whole figures: nothing stretched, nothing cut off, nothing over something else."""

import warnings
from itertools import combinations

import matplotlib
import numpy as np
import pytest
from matplotlib.patches import Ellipse
from matplotlib.text import Text

from figures.drawing.figure import FigureContent, draw_figure, save_figure
from figures.drawing.heat import blend
from figures.drawing.panel import Panel
from tests.figures.drawing.sample_panels import (
    NASTY,
    make_cells,
    make_content,
    make_mixture,
    make_photo,
)

SHAPES = [(60, 90), (90, 60), (64, 64), (30, 200), (200, 30)]


@pytest.fixture(scope="module", params=SHAPES, ids=str)
def drawn(request):
    """A figure of a photo of that shape, laid out as it will be written."""
    content = make_content(*request.param, question=NASTY)
    figure = draw_figure(content)
    figure.canvas.draw()
    return content, figure


def overlap(one, other):
    """How far two boxes overlap across and down; a negative number is a gap."""
    across = min(one.x1, other.x1) - max(one.x0, other.x0)
    return across, min(one.y1, other.y1) - max(one.y0, other.y0)


def test_a_photo_keeps_its_shape(drawn):
    content, figure = drawn
    height, width = content.photo.shape[:2]
    assert len(figure.axes) == len(content.panels) + 1  # and the colours
    for axes in figure.axes[:-1]:
        box = axes.get_window_extent()
        assert box.width / box.height == pytest.approx(width / height, rel=1e-6)
        assert tuple(axes.images[0].get_extent()) == (0, width, height, 0)


def test_no_text_leaves_the_figure_or_covers_another_or_a_panel(drawn):
    _, figure = drawn
    texts = [text for text in figure.findobj(Text) if text.get_text() and text.axes is None]
    ticks = [label for label in figure.axes[-1].get_xticklabels() if label.get_text()]
    boxes = [text.get_window_extent() for text in texts]
    for box in [*boxes, *(tick.get_window_extent() for tick in ticks)]:
        assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert 0 <= box.y0 < box.y1 <= figure.bbox.y1
    for one, other in combinations(boxes, 2):
        across, down = overlap(one, other)
        assert across <= 0 or down <= 2.5  # the boxes of neighbouring lines touch, letters do not
    for box in boxes:
        for axes in figure.axes:
            across, down = overlap(box, axes.get_window_extent())
            assert across <= 0 or down <= 1


@pytest.mark.parametrize("kind", ["png", "pdf"])
def test_odd_characters_are_text_and_not_mathematics(kind, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # such as a glyph that the font lacks
        figure = draw_figure(make_content(question=NASTY))
        save_figure(figure, tmp_path / "figure", kind, 60)
    heading = " ".join(text.get_text() for text in figure.texts[:2])
    assert "$5 and $x^2$ or \\frac{1}{2}_a & <script>" in heading


def test_what_is_drawn_is_the_density_at_every_pixel_over_the_photo():
    photo, mixture, cells = make_photo(40, 70), make_mixture(3), make_cells()
    panels = (Panel("image"), Panel("a", mixture=mixture), Panel("b", cells))
    figure = draw_figure(FigureContent(photo, "?", panels))
    image, density, weights = (axes.images[0].get_array() for axes in figure.axes[:3])
    assert np.array_equal(image, photo)
    assert np.array_equal(density, blend(photo, mixture.at_pixels(40, 70)))
    rows, columns = np.arange(40) * 8 // 40, np.arange(70) * 10 // 70
    assert np.array_equal(weights, blend(photo, cells[rows][:, columns]))


def test_a_mixture_has_dots_at_its_means_two_ellipses_each_and_its_weights():
    mixture = make_mixture(3)
    content = FigureContent(make_photo(40, 70), "?", (Panel("a", mixture=mixture),))
    axes = draw_figure(content).axes[0]
    dots = next(line for line in axes.lines if line.get_marker() == "o")
    np.testing.assert_allclose(dots.get_xydata(), mixture.mu[:, ::-1] * (70, 40))
    assert dots.get_color() == "black"
    ellipses = [patch for patch in axes.patches if isinstance(patch, Ellipse)]
    assert len(ellipses) == 6
    for k in range(3):
        one, two = ellipses[2 * k : 2 * k + 2]
        assert (two.width, two.height) == pytest.approx((2 * one.width, 2 * one.height))
        outline = mixture.outline(k, 40, 70, 1)
        assert (one.width, one.angle) == (outline.width, outline.angle)
    weights = sorted(text.get_text() for text in axes.texts)
    assert weights == sorted(f"{pi:.2f}" for pi in mixture.pi)


def test_the_outline_of_a_paraboloid_is_where_its_colours_end():
    mixture, photo = make_mixture(2, seed=3, support=6.0), np.full((200, 300, 3), 90, np.uint8)
    axes = draw_figure(FigureContent(photo, "?", (Panel("a", mixture=mixture),))).axes[0]
    edges = [patch for patch in axes.patches if isinstance(patch, Ellipse)]
    assert len(edges) == 2
    rows, columns = np.indices((200, 300)) + 0.5
    points = np.stack([columns.ravel(), rows.ravel()], 1)
    within = np.zeros(len(points), dtype=bool)
    for edge in edges:
        in_circle = edge.get_patch_transform().inverted().transform(points)
        within |= (in_circle**2).sum(1) < 1
    picture = np.asarray(axes.images[0].get_array()).reshape(-1, 3)
    is_grey = np.ptp(picture, axis=1) == 0
    assert is_grey[~within].all()
    assert is_grey[within].mean() < 0.05  # only where its colour is too weak to be seen


def test_a_long_title_takes_a_second_line_above_its_panel_and_moves_no_other_panel():
    names = "multimodal, entmax15, paraboloid, K* = 3", "discrete"
    panels = tuple(Panel(name, make_cells()) for name in names)
    figure = draw_figure(FigureContent(make_photo(90, 60), "?", panels))
    lines = [text.get_text() for text in figure.texts]
    shown = [line.replace("\u00a0", " ") for line in lines[1:4]]
    assert shown == ["multimodal, entmax15,", "paraboloid, K* = 3", "discrete"]
    first, second = (axes.get_window_extent() for axes in figure.axes[:2])
    assert (first.y0, first.y1) == (second.y0, second.y1)


def test_more_panels_than_fit_side_by_side_go_into_rows_of_one_size():
    panels = tuple(Panel(f"K = {k}", mixture=make_mixture(1)) for k in range(9))
    figure = draw_figure(FigureContent(make_photo(), "?", panels))
    boxes = [axes.get_window_extent() for axes in figure.axes[:9]]
    assert len({round(box.y0) for box in boxes}) == 2
    assert len({round(box.width) for box in boxes}) == 1


@pytest.mark.parametrize("kind", ["png", "pdf"])
def test_the_same_figure_gives_the_same_bytes_whatever_a_users_matplotlibrc_says(kind, tmp_path):
    save_figure(draw_figure(make_content()), tmp_path / "one", kind, 50)
    with matplotlib.rc_context({"figure.facecolor": "black", "font.family": "serif"}):
        save_figure(draw_figure(make_content()), tmp_path / "other", kind, 50)
        assert matplotlib.rcParams["figure.facecolor"] == "black"
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
