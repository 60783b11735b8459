"""The result of comparing models' attention with human maps, and how it goes into files."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from data.human_attention.agreement import Agreement, MapScores, Paired, round_off
from data.human_attention.map_arrays import HumanMaps, MappedQuestions

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
    """How one model's attention agrees with human attention."""

    attention: Attention
    scores: MapScores
    overall: Agreement
    by_annotator: dict[str, Agreement]
    by_num_components: dict[str, Agreement]  # empty for discrete attention
    by_answer_type: dict[str, Agreement]
    another_question: Agreement  # the same attention, compared with maps of other questions

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "name": self.attention.name,
            "head": self.attention.head,
            "blurred": self.attention.blurred,
            "overall": self.overall.to_json(),
            "by_annotator": dump_all(self.by_annotator),
            "by_num_components": dump_all(self.by_num_components),
            "by_answer_type": dump_all(self.by_answer_type),
            "against_another_questions_map": self.another_question.to_json(),
        }


@dataclass(frozen=True)
class HumanComparison:
    """Everything that was measured, all of it over the same maps."""

    questions: MappedQuestions
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
        measures = [model.scores.measures.values() for model in self.models]
        for place, question in enumerate(self.maps.questions.tolist()):
            for model, columns in zip(self.models, measures, strict=True):
                attention = model.attention
                yield (
                    int(self.questions.ids[question]),
                    int(self.questions.image_ids[question]),
                    int(self.maps.annotators[place]),
                    attention.name,
                    attention.head,
                    attention.blurred,
                    int(attention.num_components[question]) or None,
                    self.questions.answer_types[question],
                    *(round_off(float(column[place])) for column in columns),
                )


def dump_all(agreements: dict[str, Agreement]) -> dict[str, Any]:
    """Plain values of every group."""
    return {name: agreement.to_json() for name, agreement in agreements.items()}
