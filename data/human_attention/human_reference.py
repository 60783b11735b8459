"""Human attention maps as the reference that any attention, and the controls, is compared with."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from data.human_attention.agreement import Agreement, MapScores, Paired
from data.human_attention.bootstrap import Resamples
from data.human_attention.comparison import Attention, HumanComparison, ModelComparison
from data.human_attention.controls import average_other_images, blur, make_even
from data.human_attention.divergence import jensen_shannon
from data.human_attention.map_arrays import FINE_SIDE, HumanMaps, MappedQuestions, normalise, pad
from data.human_attention.rank_correlation import average_ranks, coarsen, correlate
from data.human_attention.vqa_hat import average_area


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
        bits = jensen_shannon(cells[rows], self.maps.cells)
        return MapScores(bits, correlate(self.rank(cells)[rows], self.ranks))

    def score_another(self, cells: np.ndarray) -> MapScores:
        """Every map against the attention (Q, L) to its question's partner, on that one's grid."""
        rows = self.questions.partners[self.maps.questions]
        bits = jensen_shannon(cells[rows], self.maps.elsewhere)
        return MapScores(bits, correlate(self.rank(cells)[rows], self.ranks))

    def score_people(self) -> MapScores:
        """Every map against the next person's of the same question; NaN where there is none."""
        rows = next_of_same(self.maps.questions)
        alone = rows == np.arange(len(rows))
        bits = jensen_shannon(self.maps.cells[rows], self.maps.cells)
        ranks = correlate(self.ranks[rows], self.ranks)
        return MapScores(np.where(alone, np.nan, bits), np.where(alone, np.nan, ranks))

    def rank(self, cells: np.ndarray) -> np.ndarray:
        """(Q, L) -> (Q, 196)."""
        sizes = self.questions.sizes.tolist()
        return average_ranks(
            np.stack(
                [
                    coarsen(row[: h * w].reshape(h, w))
                    for row, (h, w) in zip(cells, sizes, strict=True)
                ]
            )
        )

    def summarise(self, scores: MapScores, chosen: np.ndarray | None = None) -> Agreement:
        """Means and intervals over all maps, or over the chosen (M,) ones."""
        return Agreement.of(scores, self.resamples, self.maps.questions, chosen)

    def summarise_by(self, scores: MapScores, groups: Sequence[Any]) -> dict[str, Agreement]:
        """The same for each group of maps; `groups` names that of every map."""
        return {
            str(group): self.summarise(scores, np.array([each == group for each in groups]))
            for group in sorted(set(groups))
        }


def compare_attention(
    questions: MappedQuestions,
    maps: HumanMaps,
    attentions: Sequence[Attention],
    *,
    num_resamples: int = 2000,
    seed: int = 0,
    deviation: float = 1.0,
) -> HumanComparison:
    """Compare attention, and discrete attention blurred by `deviation` cells, with human maps."""
    reference = HumanReference(questions, maps, num_resamples, seed)
    if reference.resamples.num_images < 2:
        raise ValueError("the controls need human maps of at least two images, found one")
    everyone = [
        each
        for attention in attentions
        for each in (attention, *smooth(attention, questions.sizes, deviation))
    ]
    models = tuple(compare_model(each, reference) for each in everyone)
    paired = tuple(
        Paired.of(
            one.attention.name, one.scores, two.attention.name, two.scores, reference.resamples
        )
        for one, two in itertools.combinations(models, 2)
    )
    return HumanComparison(questions, maps, models, measure_controls(reference), paired)


def compare_model(attention: Attention, reference: HumanReference) -> ModelComparison:
    """One attention: overall, by annotator, by K*, by answer type, and against others' maps."""
    scores, rows = reference.score(attention.cells), reference.maps.questions
    types = reference.questions.answer_types
    components = [] if attention.is_discrete else attention.num_components[rows].tolist()
    return ModelComparison(
        attention,
        scores,
        reference.summarise(scores),
        reference.summarise_by(scores, reference.maps.annotators.tolist()),
        reference.summarise_by(scores, components),
        reference.summarise_by(scores, [types[row] for row in rows]),
        reference.summarise(reference.score_another(attention.cells)),
    )


def measure_controls(reference: HumanReference) -> dict[str, Agreement]:
    """Attention that knows nothing, attention that knows people, and people themselves."""
    questions, maps = reference.questions, reference.maps
    mean = average_other_images(maps.fine, reference.images, questions.image_ids)
    mean = mean.reshape(-1, FINE_SIDE, FINE_SIDE)
    centre = [
        normalise(average_area(picture, *size))
        for picture, size in zip(mean, questions.sizes.tolist(), strict=True)
    ]
    even = make_even(questions.sizes, questions.num_cells)
    return {
        "uniform": reference.summarise(reference.score(even)),
        "centre": reference.summarise(reference.score(pad(centre, questions.num_cells))),
        "another_person": reference.summarise(reference.score_people()),
    }


def smooth(attention: Attention, sizes: np.ndarray, deviation: float) -> list[Attention]:
    """A discrete attention once more, as smooth as a density; nothing for a continuous one."""
    if not attention.is_discrete:
        return []
    maps = [
        blur(row[: h * w].reshape(h, w), deviation).reshape(-1)
        for row, (h, w) in zip(attention.cells, sizes.tolist(), strict=True)
    ]
    cells = pad(maps, attention.cells.shape[1])
    name = f"{attention.name} blurred"
    return [Attention(name, attention.head, cells, attention.num_components, blurred=True)]


def next_of_same(groups: np.ndarray) -> np.ndarray:
    """For sorted groups (M,), the place of the next of the same group; the last has the first."""
    following = np.roll(np.arange(len(groups)), -1)
    first = np.searchsorted(groups, groups)
    return np.where(groups[following] == groups, following, first)
