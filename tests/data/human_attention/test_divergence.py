"""The Jensen–Shannon divergence against numbers worked out by hand and against scipy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon

from data.human_attention.divergence import NATS_PER_BIT, jensen_shannon

SEEDS = st.integers(0, 2**32 - 1)


def draw(seed: int, rows: int = 4, cells: int = 9) -> tuple[np.ndarray, np.ndarray]:
    """Two stacks of distributions in which some cells are zero."""
    generator = np.random.default_rng(seed)
    found = generator.random((2, rows, cells)) ** 4 * (generator.random((2, rows, cells)) < 0.7)
    found[..., 0] += 0.01
    first, second = found / found.sum(-1, keepdims=True)
    return first, second


def test_a_coin_against_a_certainty_is_what_a_pencil_finds() -> None:
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
def test_it_is_symmetric_and_lies_between_0_and_1_bit(seed: int) -> None:
    first, second = draw(seed)
    found = jensen_shannon(first, second)
    assert ((found >= 0) & (found <= 1)).all()
    np.testing.assert_allclose(found, jensen_shannon(second, first), atol=1e-15)


@given(SEEDS)
def test_the_same_map_twice_is_0_and_maps_that_share_no_cell_are_1_bit_apart(seed: int) -> None:
    first, second = draw(seed)
    assert (jensen_shannon(first, first) == 0).all()
    nothing = np.zeros_like(first)
    apart = jensen_shannon(np.hstack([first, nothing]), np.hstack([nothing, second]))
    np.testing.assert_allclose(apart, 1, atol=1e-12)


@given(SEEDS)
def test_padding_changes_nothing(seed: int) -> None:
    first, second = draw(seed)
    padded = [np.pad(each, ((0, 0), (0, 5))) for each in (first, second)]
    np.testing.assert_allclose(jensen_shannon(*padded), jensen_shannon(first, second), atol=1e-15)
