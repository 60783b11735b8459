"""From one pass's candidates to a table: what every λ and k_max would have given."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from data.accuracy import score_answer
from data.questions import Annotation
from mcan.candidate_answers import CandidateAnswers
from scripts.component_shares import share_collapsed, share_components


@dataclass(frozen=True)
class Row:
    """A plain evaluation with one λ and one k_max, in its digits."""

    k_max: int
    lam: float
    accuracy: float
    accuracy_by_type: dict[str, float]
    shares: list[float]  # of K* = 1…k_max, in percent
    collapsed_share: float


class LambdaTable:
    """Questions in the order of their annotations, in which the official accuracy adds them up."""

    def __init__(
        self,
        candidates: CandidateAnswers,
        annotations: Sequence[Annotation],
        words: Sequence[str],
        lams: Sequence[float],
    ) -> None:
        self.candidates, self.lams = candidates, list(lams)
        ids = np.array([annotation.question_id for annotation in annotations])
        self.order = np.searchsorted(candidates.question_ids.numpy(), ids)
        self.num_collapsed = candidates.num_collapsed.numpy()[self.order]
        answers = candidates.answers.numpy()[self.order]
        self.accuracy_by_size = score_sizes(annotations, answers, words)  # (Q, k_max)
        types = np.array([annotation.answer_type for annotation in annotations])
        names = dict.fromkeys(types.tolist())
        self.rows_of_type = {name: np.flatnonzero(types == name) for name in names}
        self.selected: dict[tuple[float, int], np.ndarray] = {}

    def select(self, lam: float, k_max: int) -> np.ndarray:
        """(Q,): K* of each question under λ."""
        if (lam, k_max) not in self.selected:
            selected = self.candidates.select(lam, k_max).numpy()
            self.selected[lam, k_max] = selected[self.order].astype(np.int8)  # a table of them
        return self.selected[lam, k_max]

    def accuracy(self, lam: float, k_max: int) -> np.ndarray:
        """(Q,): each question's accuracy in [0, 1] with the K* that λ selects."""
        return take(self.accuracy_by_size, self.select(lam, k_max))

    def row(self, lam: float, k_max: int) -> Row:
        """One line of the table."""
        selected, accuracy = self.select(lam, k_max), self.accuracy(lam, k_max)
        return Row(
            k_max,
            lam,
            average(accuracy),
            {name: average(accuracy[rows]) for name, rows in self.rows_of_type.items()},
            share_components(selected, k_max)["shares"],
            share_collapsed(take(self.num_collapsed, selected), selected),
        )

    def rows(self) -> list[Row]:
        """Every k_max up to the model's, and for each every λ."""
        sizes = range(1, self.candidates.k_max + 1)
        return [self.row(lam, k_max) for k_max in sizes for lam in self.lams]


def take(table: np.ndarray, num_components: np.ndarray) -> np.ndarray:
    """(Q,): of each row of (Q, k_max) the column of its number of components (Q,)."""
    return table[np.arange(len(table)), num_components - 1]


def score_sizes(
    annotations: Sequence[Annotation], answers: np.ndarray, words: Sequence[str]
) -> np.ndarray:
    """(Q, k_max): the accuracy of each answer (Q, k_max); equal ones are scored once."""
    accuracy = np.empty(answers.shape)
    for row, (annotation, given) in enumerate(zip(annotations, answers.tolist(), strict=True)):
        scores = {n: score_answer(words[n], annotation.answers) for n in set(given)}
        accuracy[row] = [scores[n] for n in given]
    return accuracy


def average(accuracy: np.ndarray) -> float:
    """The official average of (q,) in percent: added from left to right, rounded to two digits."""
    return round(100 * float(np.add.accumulate(accuracy)[-1]) / len(accuracy), 2)


def make_grid(low: float, high: float, count: int, extra: Sequence[float]) -> list[float]:
    """λ, ascending: `count` evenly on a logarithmic scale, in four digits, and the extra ones."""
    if count < 0 or (count > 0 and not 0 < low <= high < math.inf):
        raise ValueError(
            f"grid has low={low}, high={high}, count={count}; expected 0 < low ≤ high and a count "
            "from 0 on"
        )
    for lam in extra:
        if not 0 <= lam < math.inf:
            raise ValueError(f"grid.extra holds {lam}, but λ is zero or positive")
    # four digits: a λ that is typed off the table gives that very row
    spaced = [float(f"{lam:.4g}") for lam in np.geomspace(low, high, count)] if count else []
    lams = sorted({*spaced, *map(float, extra)})
    if not lams:
        raise ValueError("the grid of λ is empty: give grid.count or grid.extra")
    return lams


def as_cells(row: Row, k_max: int, types: Sequence[str]) -> dict[str, Any]:
    """A row for a CSV file whose columns have room for k_max components."""
    shares = [*row.shares, *[0.0] * (k_max - row.k_max)]
    return {
        "k_max": row.k_max,
        "lam": row.lam,
        "accuracy": row.accuracy,
        **{f"accuracy {name}": row.accuracy_by_type[name] for name in types},
        **{f"share K*={k}": share for k, share in enumerate(shares, 1)},
        "collapsed_share": row.collapsed_share,
    }
