"""Spearman's correlation as scipy has it, on maps brought to 14 × 14."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata, spearmanr

from data.human_attention.rank_correlation import average_ranks, coarsen, spearman


@given(st.integers(0, 2**32 - 1), st.integers(2, 12))
def test_ranks_and_correlation_are_scipys_with_ties_too(seed: int, num_values: int) -> None:
    generator = np.random.default_rng(seed)
    first, second = generator.integers(0, num_values, (2, 5, 30)).astype(float)
    first[:, :2], second[:, :2] = [0, 1], [1, 0]  # no row is constant
    np.testing.assert_array_equal(average_ranks(first), rankdata(first, axis=1))
    expected = [spearmanr(*pair).statistic for pair in zip(first, second, strict=True)]
    np.testing.assert_allclose(spearman(first, second), expected, atol=1e-12)


def test_it_asks_for_the_order_alone() -> None:
    values = np.random.default_rng(0).random((3, 40))
    np.testing.assert_allclose(spearman(values, np.exp(5 * values)), 1)
    np.testing.assert_allclose(spearman(values, -(values**3)), -1)


def test_a_constant_map_has_no_correlation() -> None:
    values = np.random.default_rng(0).random((2, 10))
    values[1] = 0.3
    found = spearman(values, np.random.default_rng(1).random((2, 10)))
    assert np.isfinite(found[0])
    assert np.isnan(found[1])


def test_a_map_becomes_the_shares_of_14_by_14_areas() -> None:
    picture = np.random.default_rng(0).random((28, 42))
    areas = picture.reshape(14, 2, 14, 3).sum(axis=(1, 3)).reshape(-1)
    np.testing.assert_allclose(coarsen(picture), areas / areas.sum(), atol=1e-12)


def test_areas_within_one_cell_of_a_coarse_grid_are_equal_to_the_last_digit() -> None:
    """Else the rounding of a sum would rank them."""
    cells = np.random.default_rng(0).random((3, 5))
    assert len(np.unique(coarsen(cells).reshape(14, 14)[:4, :2])) == 1
    assert len(np.unique(coarsen(np.full((8, 10), 0.1)))) == 1


def test_mass_far_below_what_a_density_is_integrated_to_is_none() -> None:
    cells = np.full((14, 14), 1e-16)
    cells[0, 0], cells[5, 5] = 1.0, 3e-16
    assert len(np.unique(coarsen(cells))) == 2
