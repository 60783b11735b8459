"""How well attention agrees with maps: each measure's mean and interval, and differences."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from data.human_attention.bootstrap import Estimate, Resamples
from data.human_attention.divergence import NATS_PER_BIT

DIGITS = 6  # kept in files: fewer than what the order of a sum may change


@dataclass(frozen=True)
class MapScores:
    """Two scores of every map (M,); NaN where one is not defined."""

    bits: np.ndarray  # Jensen–Shannon divergence
    spearman: np.ndarray

    @property
    def measures(self) -> dict[str, np.ndarray]:
        """(M,) each, by their names in files: low divergence and high correlation are alike."""
        return {
            "divergence_bits": self.bits,
            "divergence_nats": self.bits * NATS_PER_BIT,
            "distance_bits": np.sqrt(self.bits),
            "spearman": self.spearman,
        }


@dataclass(frozen=True)
class Agreement:
    """The mean of every measure over maps."""

    measures: dict[str, Estimate]
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
        counted = np.isfinite(scores.bits) & (True if chosen is None else chosen)
        measures = {n: resamples.estimate(each, chosen) for n, each in scores.measures.items()}
        return cls(measures, int(counted.sum()), len(np.unique(questions[counted])))

    def to_json(self) -> dict[str, Any]:
        """Plain values; null where a measure is not defined."""
        return {**dump(self.measures), "maps": self.num_maps, "questions": self.num_questions}


@dataclass(frozen=True)
class Paired:
    """The mean difference first − second over the same maps; below zero the first diverges less."""

    first: str
    second: str
    measures: dict[str, Estimate]

    @classmethod
    def of(
        cls, first: str, one: MapScores, second: str, two: MapScores, resamples: Resamples
    ) -> "Paired":
        """Map by map."""
        others = two.measures
        measures = {n: resamples.estimate(each - others[n]) for n, each in one.measures.items()}
        return cls(first, second, measures)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"first": self.first, "second": self.second, **dump(self.measures)}


def dump(measures: Mapping[str, Estimate]) -> dict[str, dict[str, float | None]]:
    """Estimates as plain numbers."""
    return {
        name: {part: round_off(value) for part, value in vars(estimate).items()}
        for name, estimate in measures.items()
    }


def round_off(value: float) -> float | None:
    """A number as it goes into a file; NaN is no JSON."""
    return round(value, DIGITS) + 0.0 if math.isfinite(value) else None
