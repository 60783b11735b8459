"""The heat map and its colours."""

import numpy as np
import pytest

from figures.drawing.heat import blend, dim, shade, spread_cells, to_scale
from tests.figures.drawing.sample_panels import make_cells, make_photo


def luminance(colors):
    """Relative luminance of sRGB colours (…, 3) in [0, 1], as WCAG defines it."""
    linear = np.where(colors <= 0.04045, colors / 12.92, ((colors + 0.055) / 1.055) ** 2.4)
    return linear @ np.array([0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("shape", [(8, 10), (16, 30), (37, 53)])
def test_every_pixel_has_the_weight_of_the_cell_that_its_corner_lies_in(shape):
    cells, (height, width) = make_cells(8, 10), shape
    spread = spread_cells(cells, height, width)
    for row in range(height):
        for column in range(width):
            assert spread[row, column] == cells[row * 8 // height, column * 10 // width]


def test_smooth_cells_have_their_weights_at_their_centres_and_no_borders():
    cells = make_cells(4, 5)
    spread = spread_cells(cells, 4 * 9, 5 * 9, smooth=True)
    np.testing.assert_allclose(spread[4::9, 4::9], cells, rtol=1e-5)
    assert np.abs(np.diff(spread, axis=1)).max() < np.abs(np.diff(cells, axis=1)).max() / 8


def test_a_panel_uses_the_whole_scale_and_nothing_stays_nothing():
    scaled = to_scale(np.array([0, 1e-9, 2.5e-9, 1e-8]))
    np.testing.assert_allclose([scaled[0], scaled[-1]], [0, 1])
    assert (np.diff(scaled) > 0).all()
    assert not to_scale(np.zeros((2, 2))).any()


def test_more_heat_is_always_brighter_and_stronger():
    shaded = shade(np.linspace(0, 1, 64))
    assert (np.diff(luminance(shaded[:, :3])) > 0).all()
    assert (np.diff(shaded[:, 3]) >= 0).all()
    assert shaded[0, 3] == 0


@pytest.mark.parametrize("shade_of_photo", [0, 128, 255])
def test_the_peak_stands_out_from_a_photo_of_any_brightness(shade_of_photo):
    photo = np.full((2, 2, 3), shade_of_photo, np.uint8)
    drawn = blend(photo, np.array([[0.0, 0.1], [0.5, 1.0]])) / 255
    light = luminance(drawn)
    assert light[1, 1] > light[0, 0]
    below, half, peak = drawn[0, 0], drawn[1, 0], drawn[1, 1]
    assert np.ptp(below) < 0.01  # the photo is grey
    assert np.abs(peak - below).max() > 0.2
    assert np.abs(half - below).max() > 0.2


def test_cells_of_weight_zero_have_no_tint_and_the_least_weight_has_one():
    cells, photo = np.array([[0.0, 1e-3], [0.0, 1.0]]), np.full((4, 4, 3), 120, np.uint8)
    drawn = blend(photo, spread_cells(cells, 4, 4))
    tinted = np.ptp(drawn, axis=2) > 0
    assert np.array_equal(tinted, np.array([[False, False, True, True]] * 4))


def test_where_there_is_no_heat_the_photo_is_grey_and_dim():
    photo = make_photo()
    heat = np.zeros(photo.shape[:2])
    heat[0, 0] = 1
    drawn = blend(photo, heat)
    expected = np.round(255 * dim(photo)).astype(int)
    assert np.array_equal(drawn[1:], expected[1:].repeat(3, axis=2))
    assert drawn.shape == photo.shape
