"""How well attention agrees with maps: the mean of each measure, and its interval.

Intervals come from resampling whole images: maps of one image are not independent.
"""

from dataclasses import dataclass

import numpy as np

LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean over maps and its interval; all NaN where there is nothing to average."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Estimates:
    """Every measure by its name in files; low divergence is good, and so is high correlation."""

    divergence_bits: Estimate  # Jensen–Shannon
    divergence_nats: Estimate
    distance_bits: Estimate
    spearman: Estimate


@dataclass(frozen=True)
class Agreement(Estimates):
    """Every measure, and over how many maps of how many questions."""

    maps: int
    questions: int


class Resamples:
    """The same draws of images, with replacement, for everything that is estimated."""

    def __init__(self, image_ids: np.ndarray, num_resamples: int, seed: int) -> None:
        """`image_ids` (M,): the image of every map."""
        if num_resamples < 1:
            raise ValueError(f"resamples is {num_resamples}, expected at least 1")
        if seed < 0:
            raise ValueError(f"seed is {seed}, expected 0 or more")
        _, self.images = np.unique(image_ids, return_inverse=True)
        self.num_images = int(self.images.max()) + 1
        generator = np.random.default_rng(seed)
        even = np.full(self.num_images, 1 / self.num_images)
        draws = generator.multinomial(self.num_images, even, size=num_resamples)
        self.draws = draws.astype(np.float64)  # (resamples, images): how often each was drawn

    def estimate(self, values: np.ndarray, chosen: np.ndarray | bool = True) -> Estimate:
        """The mean of values (M,), or of the chosen ones, and its percentile interval.

        Values that are NaN are left out; so are draws without any of the images in question.
        """
        counted = np.isfinite(values) & chosen
        if not counted.any():
            return Estimate(np.nan, np.nan, np.nan)
        sums = self.draws @ self.add_up(np.where(counted, values, 0.0))
        counts = self.draws @ self.add_up(counted.astype(np.float64))
        means = sums[counts > 0] / counts[counts > 0]
        mean = float(values[counted].mean())
        if not len(means):
            return Estimate(mean, np.nan, np.nan)
        low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        return Estimate(mean, float(low), float(high))

    def add_up(self, values: np.ndarray) -> np.ndarray:
        """(M,) -> (images,): the sum over the maps of each image."""
        return np.bincount(self.images, weights=values, minlength=self.num_images)
