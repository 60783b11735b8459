"""Divergence and rank correlation against numbers worked out by hand and against scipy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import rankdata, spearmanr

from data.human_attention.measures import (
    NATS_PER_BIT,
    average_ranks,
    coarsen,
    correlate,
    jensen_shannon,
)

SEEDS = st.integers(0, 2**32 - 1)


def draw(seed: int, rows: int = 4, cells: int = 9) -> tuple[np.ndarray, np.ndarray]:
    """Two stacks of distributions in which some cells are zero."""
    generator = np.random.default_rng(seed)
    found = generator.random((2, rows, cells)) ** 4 * (generator.random((2, rows, cells)) < 0.7)
    found[..., 0] += 0.01
    first, second = found / found.sum(-1, keepdims=True)
    return first, second


def test_a_coin_against_a_certainty_is_what_one_works_out_by_hand() -> None:
    """m = (3/4, 1/4): half of (log2 4/3) and half of (½ log2 2/3 + ½ log2 2)."""
    by_hand = 0.5 * math.log2(4 / 3) + 0.5 * (0.5 * math.log2(2 / 3) + 0.5)
    found = jensen_shannon(np.array([1.0, 0.0]), np.array([0.5, 0.5]))
    assert found == pytest.approx(by_hand, abs=1e-15)
    assert found == pytest.approx(0.311278, abs=1e-6)
    assert found * NATS_PER_BIT == pytest.approx(0.215762, abs=1e-6)


@given(SEEDS)
def test_it_is_the_square_of_scipys_distance_in_bits_and_in_nats(seed: int) -> None:
    first, second = draw(seed)
    found = jensen_shannon(first, second)
    np.testing.assert_allclose(found, jensenshannon(first, second, base=2, axis=1) ** 2, atol=1e-12)
    nats = jensenshannon(first, second, axis=1) ** 2
    np.testing.assert_allclose(found * NATS_PER_BIT, nats, atol=1e-12)


@given(SEEDS)
def test_it_is_symmetric_between_0_and_1_bit_and_ignores_padding(seed: int) -> None:
    first, second = draw(seed)
    found = jensen_shannon(first, second)
    assert ((found >= 0) & (found <= 1)).all()
    np.testing.assert_allclose(found, jensen_shannon(second, first), atol=1e-15)
    nothing = np.zeros_like(first)
    padded = jensen_shannon(np.hstack([first, nothing]), np.hstack([second, nothing]))
    np.testing.assert_allclose(padded, found, atol=1e-15)
    assert (jensen_shannon(first, first) == 0).all()
    apart = jensen_shannon(np.hstack([first, nothing]), np.hstack([nothing, second]))
    np.testing.assert_allclose(apart, 1, atol=1e-12)  # no cell in common


def spearman(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The rank correlation of the rows of (M, N) and (M, N)."""
    return correlate(average_ranks(first), average_ranks(second))


@given(SEEDS, st.integers(2, 12))
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
