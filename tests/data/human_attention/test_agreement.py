"""Intervals: whole images are drawn, the same ones every time."""

import numpy as np
import pytest

from data.human_attention.agreement import Resamples

IMAGES = np.array([4, 4, 4, 9, 2, 2, 7])
VALUES = np.array([0.1, 0.4, 0.2, 0.9, 0.3, 0.5, 0.8])


def resample_by_hand(resamples: Resamples, values: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """The mean of each resample, from copies of the maps of every image as often as drawn."""
    means = []
    for draw in resamples.draws.astype(int):
        copies = [
            value
            for image, times in zip(np.unique(IMAGES), draw, strict=True)
            for _ in range(times)
            for value in values[(image == IMAGES) & kept]
        ]
        if copies:
            means.append(np.mean(copies))
    return np.array(means)


@pytest.mark.parametrize("kept", [np.ones(7, bool), np.array([0, 1, 1, 1, 0, 0, 0], bool)])
def test_the_interval_is_that_of_means_over_copies_of_whole_images(kept: np.ndarray) -> None:
    resamples = Resamples(IMAGES, 300, seed=3)
    found = resamples.estimate(VALUES, kept)
    means = resample_by_hand(resamples, VALUES, kept)
    assert found.mean == pytest.approx(VALUES[kept].mean())
    assert [found.low, found.high] == pytest.approx(np.quantile(means, [0.025, 0.975]).tolist())
    assert found.low < found.mean < found.high


def test_every_draw_has_as_many_images_as_there_are() -> None:
    resamples = Resamples(IMAGES, 50, seed=0)
    assert (resamples.draws.sum(1) == 4).all()


def test_the_seed_decides_the_interval_and_nothing_else_does() -> None:
    first, again, other = (Resamples(IMAGES, 200, seed).estimate(VALUES) for seed in (0, 0, 1))
    assert first == again
    assert first.mean == other.mean
    assert first != other


def test_a_wider_spread_has_a_wider_interval_and_a_constant_none() -> None:
    images = np.arange(200)
    noise = np.random.default_rng(0).normal(size=200)
    resamples = Resamples(images, 2000, seed=0)
    found = resamples.estimate(noise)
    # of 200 independent values: ± 1.96 standard errors
    error = noise.std() / np.sqrt(200)
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.1)
    even = resamples.estimate(np.full(200, 0.3))
    assert [even.low, even.mean, even.high] == pytest.approx([0.3] * 3)


def test_what_is_not_defined_is_left_out() -> None:
    resamples = Resamples(IMAGES, 100, seed=0)
    values = np.where(IMAGES == 4, np.nan, VALUES)
    assert resamples.estimate(values) == resamples.estimate(VALUES, IMAGES != 4)
    nothing = resamples.estimate(np.full(7, np.nan))
    assert np.isnan([nothing.mean, nothing.low, nothing.high]).all()


@pytest.mark.parametrize(
    ("number", "seed", "message"), [(0, 0, "resamples is 0"), (10, -1, "seed is -1")]
)
def test_impossible_settings_are_named(number: int, seed: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Resamples(IMAGES, number, seed)
