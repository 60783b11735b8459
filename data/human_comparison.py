"""What came of holding models' attention against people's maps, and how it goes into files."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from data.agreement import Agreement, MapScores, Paired, round_off
from data.divergence import NATS_PER_BIT
from data.human_maps import HumanMaps, LookedAtQuestions

COLUMNS = (
    "question_id", "image_id", "annotator", "model", "head", "blurred", "num_components",
    "answer_type", "divergence_bits", "divergence_nats", "distance_bits", "spearman",
)  # fmt: skip


@dataclass(frozen=True)
class Attention:
    """One model's attention to every question."""

    name: str
    head: str
    cells: np.ndarray  # (Q, L): a distribution over the grid, zero past it
    num_components: np.ndarray  # (Q,) int64: K*; 0 for discrete attention
    blurred: bool = False

    @property
    def is_discrete(self) -> bool:
        """Whether it is weights on cells, without a density."""
        return not self.num_components.any()


@dataclass(frozen=True)
class ModelComparison:
    """How one model's attention agrees with people's."""

    attention: Attention
    scores: MapScores
    overall: Agreement
    by_annotator: dict[str, Agreement]
    by_num_components: dict[str, Agreement]  # empty for discrete attention
    by_answer_type: dict[str, Agreement]
    another_question: Agreement  # the same attention, held against maps of other questions

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        groups = {
            "by_annotator": self.by_annotator,
            "by_num_components": self.by_num_components,
            "by_answer_type": self.by_answer_type,
        }
        return {
            "name": self.attention.name,
            "head": self.attention.head,
            "blurred": self.attention.blurred,
            "overall": self.overall.to_json(),
            **{name: dump_all(group) for name, group in groups.items()},
            "against_another_questions_map": self.another_question.to_json(),
        }


@dataclass(frozen=True)
class HumanComparison:
    """Everything that was measured, all of it over the same maps."""

    questions: LookedAtQuestions
    maps: HumanMaps
    models: tuple[ModelComparison, ...]  # each discrete one is followed by itself, blurred
    controls: dict[str, Agreement]
    paired: tuple[Paired, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "questions": len(np.unique(self.maps.questions)),
            "images": len(np.unique(self.questions.image_ids[self.maps.questions])),
            "maps": len(self.maps),
            "black_maps_left_out": self.maps.num_black,
            "models": [model.to_json() for model in self.models],
            "controls": dump_all(self.controls),
            "paired_differences": [each.to_json() for each in self.paired],
        }

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The values of COLUMNS for every map and model, by question, annotator and model."""
        for place, question in enumerate(self.maps.questions.tolist()):
            for model in self.models:
                bits, attention = float(model.scores.bits[place]), model.attention
                yield (
                    int(self.questions.ids[question]),
                    int(self.questions.image_ids[question]),
                    int(self.maps.annotators[place]),
                    attention.name,
                    attention.head,
                    attention.blurred,
                    int(attention.num_components[question]) or None,
                    self.questions.answer_types[question],
                    round_off(bits),
                    round_off(bits * NATS_PER_BIT),
                    round_off(bits**0.5),
                    round_off(float(model.scores.spearman[place])),
                )


def dump_all(agreements: dict[str, Agreement]) -> dict[str, Any]:
    """Plain values of every group."""
    return {name: agreement.to_json() for name, agreement in agreements.items()}
