"""The controls: a blur that keeps the mass, the mean of other images."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter

from data.human_attention.controls import average_other_images, blur, make_even


@given(st.integers(1, 9), st.integers(1, 9), st.floats(0.1, 5), st.integers(0, 99))
def test_a_blur_keeps_the_mass_and_is_never_negative(
    height: int, width: int, deviation: float, seed: int
) -> None:
    cells = np.random.default_rng(seed).random((height, width))
    smooth = blur(cells, deviation)
    assert smooth.sum() == pytest.approx(cells.sum())
    assert (smooth >= 0).all()


def test_away_from_the_border_a_blur_is_scipys_gaussian_filter() -> None:
    cells = np.zeros((31, 41))
    cells[15, 20], cells[14, 22] = 0.75, 0.25
    expected = gaussian_filter(cells, 1.5, mode="constant", truncate=8)
    np.testing.assert_allclose(blur(cells, 1.5), expected, atol=1e-12)


def test_a_narrow_blur_changes_nothing_and_a_wide_one_evens_out() -> None:
    cells = np.random.default_rng(0).random((6, 8))
    np.testing.assert_allclose(blur(cells, 0.1), cells, atol=1e-12)
    np.testing.assert_allclose(blur(cells, 1e4), cells.mean(), rtol=1e-6)


def test_the_mean_of_other_images_leaves_the_own_one_out() -> None:
    generator = np.random.default_rng(0)
    maps, map_images = generator.random((7, 5)), np.array([3, 3, 8, 5, 5, 5, 8])
    image_ids = np.array([5, 3, 8, 9, 5, 1])  # 9 and 1 have no map of their own
    found = average_other_images(maps, map_images, image_ids)
    for image_id, mean in zip(image_ids, found, strict=True):
        others = [row for row, image in zip(maps, map_images, strict=True) if image != image_id]
        np.testing.assert_allclose(mean, np.mean(others, axis=0), atol=1e-12)


def test_even_attention_gives_every_cell_of_a_grid_the_same() -> None:
    even = make_even(np.array([[2, 3], [1, 4]]), 6)
    np.testing.assert_allclose(even, [[1 / 6] * 6, [0.25] * 4 + [0] * 2])
