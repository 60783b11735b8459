"""Models' attention compared with human maps: overall, by group, with controls, in pairs."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, is_dataclass, replace
from typing import Any

import numpy as np

from data.human_attention.agreement import Agreement, Estimates
from data.human_attention.controls import blur
from data.human_attention.human_reference import HumanReference, MapScores
from data.human_attention.map_arrays import HumanMaps, MappedQuestions, pad, unpad

DIGITS = 6  # kept in files: fewer than what the order of a sum may change


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
            "overall": dump(self.overall),
            "by_annotator": dump(self.by_annotator),
            "by_num_components": dump(self.by_num_components),
            "by_answer_type": dump(self.by_answer_type),
            "against_another_questions_map": dump(self.another_question),
        }


@dataclass(frozen=True)
class Paired:
    """The mean difference first − second over the same maps; below zero the first diverges less."""

    first: str
    second: str
    difference: Estimates


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
            "controls": dump(self.controls),
            "paired_differences": [
                {"first": each.first, "second": each.second, **dump(each.difference)}
                for each in self.paired
            ],
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """The columns of every map and model, by question, annotator and model."""
        for place, question in enumerate(self.maps.questions):
            for model in self.models:
                yield {
                    "question_id": self.questions.ids[question],
                    "image_id": self.questions.image_ids[question],
                    "annotator": self.maps.annotators[place],
                    "model": model.attention.name,
                    "head": model.attention.head,
                    "blurred": model.attention.blurred,
                    "num_components": model.attention.num_components[question] or None,
                    "answer_type": self.questions.answer_types[question],
                    **{name: dump(float(each[place])) for name, each in model.scores.items()},
                }


def dump(value: Any) -> Any:
    """Plain values as they go into a file: rounded, and null where a measure is not defined."""
    if is_dataclass(value):
        value = vars(value)
    if isinstance(value, dict):
        return {name: dump(each) for name, each in value.items()}
    if isinstance(value, float):
        return round(value, DIGITS) + 0.0 if math.isfinite(value) else None
    return value


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
    models: list[ModelComparison] = []
    for attention in attentions:
        models.append(compare_model(attention, reference))
        if attention.is_discrete:
            models.append(compare_model(smooth(attention, questions.sizes, deviation), reference))
    paired = tuple(
        compare_pair(one, two, reference) for one, two in itertools.combinations(models, 2)
    )
    return HumanComparison(questions, maps, tuple(models), reference.measure_controls(), paired)


def compare_model(attention: Attention, reference: HumanReference) -> ModelComparison:
    """One attention's agreement: overall, by annotator, K*, answer type, and with others' maps."""
    scores, rows = reference.score(attention.cells), reference.maps.questions
    components = [] if attention.is_discrete else attention.num_components[rows]
    return ModelComparison(
        attention,
        scores,
        reference.summarise(scores),
        reference.summarise_by(scores, reference.maps.annotators),
        reference.summarise_by(scores, np.array(components)),
        reference.summarise_by(scores, np.array(reference.questions.answer_types)[rows]),
        reference.summarise(reference.score_another(attention.cells)),
    )


def compare_pair(
    first: ModelComparison, second: ModelComparison, reference: HumanReference
) -> Paired:
    """Two attentions, map by map."""
    differences = {name: each - second.scores[name] for name, each in first.scores.items()}
    estimates = Estimates(**reference.estimate(differences))
    return Paired(first.attention.name, second.attention.name, estimates)


def smooth(attention: Attention, sizes: np.ndarray, deviation: float) -> Attention:
    """A discrete attention blurred by `deviation` cells, so that it is as smooth as a density."""
    maps = [blur(cells, deviation).reshape(-1) for cells in unpad(attention.cells, sizes)]
    cells = pad(maps, attention.cells.shape[1])
    return replace(attention, name=f"{attention.name} blurred", cells=cells, blurred=True)
