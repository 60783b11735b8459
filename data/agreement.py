"""How well attention agrees with maps: each measure's mean and interval, and differences."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from data.bootstrap import Estimate, Resamples
from data.divergence import NATS_PER_BIT

DIGITS = 6  # kept in files: fewer than what the order of a sum may change


@dataclass(frozen=True)
class MapScores:
    """Two measures of every map (M,); NaN where one is not defined."""

    bits: np.ndarray  # Jensen–Shannon divergence
    spearman: np.ndarray


@dataclass(frozen=True)
class Agreement:
    """Means over maps: low divergence and high correlation are alike."""

    divergence_bits: Estimate
    divergence_nats: Estimate
    distance_bits: Estimate  # mean of the square root of each map's divergence in bits
    spearman: Estimate
    num_maps: int
    num_questions: int

    @classmethod
    def of(
        cls,
        scores: MapScores,
        resamples: Resamples,
        questions: np.ndarray,
        chosen: np.ndarray | None = None,
    ) -> "Agreement":
        """Of all maps or of the chosen (M,) ones; `questions` (M,) are the maps' own."""
        bits = resamples.estimate(scores.bits, chosen)
        counted = np.isfinite(scores.bits) & (True if chosen is None else chosen)
        return cls(
            bits,
            bits.scaled(NATS_PER_BIT),
            resamples.estimate(np.sqrt(scores.bits), chosen),
            resamples.estimate(scores.spearman, chosen),
            int(counted.sum()),
            len(np.unique(questions[counted])),
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values; null where a measure is not defined."""
        return {
            "divergence_bits": dump(self.divergence_bits),
            "divergence_nats": dump(self.divergence_nats),
            "distance_bits": dump(self.distance_bits),
            "spearman": dump(self.spearman),
            "maps": self.num_maps,
            "questions": self.num_questions,
        }


@dataclass(frozen=True)
class Paired:
    """The mean difference first − second over the same maps; below zero the first diverges less."""

    first: str
    second: str
    divergence_bits: Estimate
    distance_bits: Estimate
    spearman: Estimate

    @classmethod
    def of(
        cls, first: str, one: MapScores, second: str, two: MapScores, resamples: Resamples
    ) -> "Paired":
        """Map by map."""
        return cls(
            first,
            second,
            resamples.estimate(one.bits - two.bits),
            resamples.estimate(np.sqrt(one.bits) - np.sqrt(two.bits)),
            resamples.estimate(one.spearman - two.spearman),
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "first": self.first,
            "second": self.second,
            "divergence_bits": dump(self.divergence_bits),
            "distance_bits": dump(self.distance_bits),
            "spearman": dump(self.spearman),
        }


def dump(estimate: Estimate) -> dict[str, float | None]:
    """An estimate as plain numbers."""
    return {name: round_off(value) for name, value in vars(estimate).items()}


def round_off(value: float) -> float | None:
    """A number as it goes into a file; NaN is no JSON."""
    return round(value, DIGITS) + 0.0 if math.isfinite(value) else None
