"""Human attention maps as the reference that any attention, and the controls, is compared with."""

import numpy as np

from data.human_attention.agreement import Agreement, Estimate, Resamples
from data.human_attention.controls import average_other_images, make_even
from data.human_attention.map_arrays import (
    FINE_SIDE,
    HumanMaps,
    MappedQuestions,
    pad,
    unpad,
)
from data.human_attention.measures import (
    NATS_PER_BIT,
    average_ranks,
    coarsen,
    correlate,
    jensen_shannon,
)
from data.human_attention.vqa_hat import distribute

MapScores = dict[str, np.ndarray]  # the fields of Estimates, (M,) each; NaN where not defined


class HumanReference:
    """Human attention maps, prepared for comparing any number of attentions with them."""

    def __init__(
        self, questions: MappedQuestions, maps: HumanMaps, num_resamples: int, seed: int
    ) -> None:
        self.questions, self.maps = questions, maps
        self.images = questions.image_ids[maps.questions]  # (M,)
        self.resamples = Resamples(self.images, num_resamples, seed)
        self.ranks = average_ranks(maps.coarse)  # (M, 196)

    def score(self, cells: np.ndarray) -> MapScores:
        """Every map against the attention (Q, L) to its own question."""
        rows = self.maps.questions
        return self.measure(cells[rows], self.rank(cells)[rows], self.maps.cells)

    def score_another(self, cells: np.ndarray) -> MapScores:
        """Every map against the attention (Q, L) to its question's partner, on that one's grid."""
        rows = self.questions.partners[self.maps.questions]
        return self.measure(cells[rows], self.rank(cells)[rows], self.maps.elsewhere)

    def score_annotators(self) -> MapScores:
        """Every map against the next person's of the same question; NaN where there is none."""
        rows = next_of_same(self.maps.questions)
        alone = rows == np.arange(len(rows))
        scores = self.measure(self.maps.cells[rows], self.ranks[rows], self.maps.cells)
        return {name: np.where(alone, np.nan, values) for name, values in scores.items()}

    def measure(self, cells: np.ndarray, ranks: np.ndarray, maps: np.ndarray) -> MapScores:
        """Attention (M, L) and its ranks (M, 196) against the maps on the same grids (M, L)."""
        bits = jensen_shannon(cells, maps)
        return {
            "divergence_bits": bits,
            "divergence_nats": bits * NATS_PER_BIT,
            "distance_bits": np.sqrt(bits),
            "spearman": correlate(ranks, self.ranks),
        }

    def rank(self, cells: np.ndarray) -> np.ndarray:
        """The ranks (Q, 196) of 14 × 14 areas by their share of the attention (Q, L)."""
        return average_ranks(np.stack([*map(coarsen, unpad(cells, self.questions.sizes))]))

    def estimate(self, scores: MapScores, chosen: np.ndarray | bool = True) -> dict[str, Estimate]:
        """Means and intervals of scores, or of differences between scores."""
        return {name: self.resamples.estimate(each, chosen) for name, each in scores.items()}

    def summarise(self, scores: MapScores, chosen: np.ndarray | bool = True) -> Agreement:
        """The agreement over all maps, or over the chosen (M,) ones."""
        counted = np.isfinite(scores["divergence_bits"]) & chosen
        num_questions = len(np.unique(self.maps.questions[counted]))
        return Agreement(
            **self.estimate(scores, chosen), maps=int(counted.sum()), questions=num_questions
        )

    def summarise_by(self, scores: MapScores, groups: np.ndarray) -> dict[str, Agreement]:
        """The agreement over each group of maps; `groups` (M,) names that of every map."""
        return {str(group): self.summarise(scores, groups == group) for group in np.unique(groups)}

    def measure_controls(self) -> dict[str, Agreement]:
        """The agreement of uniform attention, of other images' mean map, and of another person."""
        questions = self.questions
        mean = average_other_images(self.maps.fine, self.images, questions.image_ids)
        centre = [
            distribute(cells.reshape(FINE_SIDE, FINE_SIDE), *size)
            for cells, size in zip(mean, questions.sizes.tolist(), strict=True)
        ]
        even = make_even(questions.sizes, questions.num_cells)
        return {
            "uniform": self.summarise(self.score(even)),
            "centre": self.summarise(self.score(pad(centre, questions.num_cells))),
            "another_person": self.summarise(self.score_annotators()),
        }


def next_of_same(groups: np.ndarray) -> np.ndarray:
    """For sorted groups (M,), the place of the next of the same group; the last has the first."""
    following = np.roll(np.arange(len(groups)), -1)
    first = np.searchsorted(groups, groups)
    return np.where(groups[following] == groups, following, first)
