"""The maps of many questions as arrays: what a model's attention is compared with."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from data.human_attention.measures import coarsen
from data.human_attention.vqa_hat import MappedQuestion, distribute, read_map

FINE_SIDE = 32  # cells per side on which maps of different grids are averaged: the longest grid's


@dataclass(frozen=True)
class MappedQuestions:
    """The questions that have human maps, by ascending id, and their grids."""

    ids: np.ndarray  # (Q,) int64
    image_ids: np.ndarray  # (Q,) int64
    sizes: np.ndarray  # (Q, 2): height and width of the image's grid
    answer_types: tuple[str, ...]
    partners: np.ndarray  # (Q,): another question, whose attention the map is compared with

    @property
    def num_cells(self) -> int:
        """L: cells of the largest grid."""
        return int(self.sizes.prod(axis=1).max())


class HumanMap(NamedTuple):
    """One person's map as distributions over several grids."""

    question: int  # place in the list of questions
    annotator: int
    cells: np.ndarray  # (h·w,), the grid of the question's image
    elsewhere: np.ndarray  # (h·w,), the grid of its partner's image
    coarse: np.ndarray  # (196,), to be ranked
    fine: np.ndarray  # (1024,), to be averaged


@dataclass(frozen=True)
class HumanMaps:
    """All maps but the black ones, by question and annotator; cells are zero past a grid."""

    questions: np.ndarray  # (M,) int64, place in the list of questions
    annotators: np.ndarray  # (M,) int64
    cells: np.ndarray  # (M, L)
    elsewhere: np.ndarray  # (M, L)
    coarse: np.ndarray  # (M, 196)
    fine: np.ndarray  # (M, 1024)
    num_black: int

    def __len__(self) -> int:
        return len(self.questions)


def read_question(
    number: int, mapped: MappedQuestion, questions: MappedQuestions
) -> list[HumanMap | None]:
    """Every map of a question, None for a black one."""
    return [
        spread_map(number, annotator, read_map(path), questions)
        for annotator, path in zip(mapped.annotators, mapped.maps, strict=True)
    ]


def spread_map(
    number: int, annotator: int, picture: np.ndarray, questions: MappedQuestions
) -> HumanMap | None:
    """A picture (H, W) over the grids it is needed on; None when it is black."""
    if not picture.any():
        return None
    own = tuple(questions.sizes[number].tolist())
    other = tuple(questions.sizes[questions.partners[number]].tolist())
    cells, elsewhere, fine = (
        distribute(picture, *size) for size in (own, other, (FINE_SIDE, FINE_SIDE))
    )
    return HumanMap(number, annotator, cells, elsewhere, coarsen(picture), fine)


def stack_maps(found: Sequence[HumanMap | None], num_cells: int, source: object) -> HumanMaps:
    """Put maps into arrays; `source` names their folder in errors."""
    maps = sorted((each for each in found if each is not None), key=lambda each: each[:2])
    if not maps:
        raise ValueError(f"every map in {source} is black, so there is nothing to compare with")
    questions, annotators, cells, elsewhere, coarse, fine = zip(*maps, strict=True)
    return HumanMaps(
        np.array(questions),
        np.array(annotators),
        pad(cells, num_cells),
        pad(elsewhere, num_cells),
        np.stack(coarse),
        np.stack(fine),
        len(found) - len(maps),
    )


def pad(rows: Sequence[np.ndarray], length: int) -> np.ndarray:
    """Rows of different lengths as one array (n, length), zero past their ends."""
    padded = np.zeros((len(rows), length))
    for place, row in enumerate(rows):
        padded[place, : len(row)] = row
    return padded


def unpad(cells: np.ndarray, sizes: np.ndarray) -> Iterator[np.ndarray]:
    """The rows of (Q, L) over their grids of sizes (Q, 2), each (h, w)."""
    for row, (height, width) in zip(cells, sizes.tolist(), strict=True):
        yield row[: height * width].reshape(height, width)
