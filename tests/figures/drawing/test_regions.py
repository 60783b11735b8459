import io

import numpy as np
import pytest

from figures.drawing.figure import FigureContent, draw_figure, save_figure
from figures.drawing.html_parts import draw_boxes
from figures.drawing.panel import Panel
from figures.drawing.regions import LEAST_SHARE, MOST_OUTLINES, Regions
from tests.figures.drawing.sample_panels import make_photo


def make_regions(num_regions=12, seed=0):
    generator = np.random.default_rng(seed)
    corners = generator.uniform(size=(num_regions, 2, 2))
    boxes = np.concatenate([corners.min(1), corners.max(1)], axis=1)
    return Regions(generator.dirichlet(np.ones(num_regions)), boxes)


def test_a_pixel_has_the_weights_of_all_boxes_that_cover_it():
    regions, expected = make_regions(), np.zeros((9, 14))
    for row in range(9):
        for column in range(14):
            x, y = (column + 0.5) / 14, (row + 0.5) / 9
            for weight, (left, top, right, bottom) in zip(
                regions.weights, regions.boxes, strict=True
            ):
                expected[row, column] += weight * (left <= x < right and top <= y < bottom)
    np.testing.assert_allclose(regions.at_pixels(9, 14), expected, atol=1e-12)
    assert expected.max() > regions.weights.max()  # some boxes overlap


def test_the_heaviest_boxes_are_outlined_where_they_are():
    weights = np.array([0.04, 0.5, 0.06, 0.2, 0.2])
    boxes = np.tile([0.1, 0.2, 0.4, 0.9], (5, 1))
    boxes[1] = (0.5, 0.25, 0.75, 1.0)
    strongest = Regions(weights, boxes).strongest()
    assert strongest.weights.tolist() == [0.5, 0.2, 0.2]  # not those below LEAST_SHARE of the peak
    assert LEAST_SHARE == 0.2
    first = next(strongest.outlines(200, 400))
    assert first == pytest.approx((200, 50, 100, 150, 1.0))
    even = Regions(np.full(20, 0.05), np.tile(boxes[0], (20, 1))).strongest()
    assert len(even.weights) == MOST_OUTLINES


def draw(*panels):
    file = io.BytesIO()
    content = FigureContent(make_photo(), "Where?", panels)
    save_figure(draw_figure(content), file, "png", 60)
    return file.getvalue()


def test_a_panel_of_regions_shows_the_boxes_and_not_a_grid():
    regions = make_regions()
    cells = regions.weights[:, None]
    as_grid, as_boxes = Panel("discrete", cells), Panel("discrete", cells, boxes=regions.boxes)
    np.testing.assert_array_equal(as_boxes.heat(9, 14), regions.at_pixels(9, 14))
    assert draw(as_grid) != draw(as_boxes)
    mirrored = regions.boxes[:, [2, 1, 0, 3]] * (-1, 1, -1, 1) + (1, 0, 1, 0)
    assert draw(as_boxes) != draw(Panel("discrete", cells, boxes=mirrored))


def test_a_page_has_a_frame_and_a_weight_for_each_of_the_heaviest():
    regions = make_regions()
    drawn = draw_boxes(regions, 300, 200)
    heaviest = regions.strongest()
    assert drawn.count('fill="none" stroke="#fff"') == len(heaviest.weights)
    for weight in heaviest.weights:
        assert f">{weight:.2f}</text>" in drawn
