"""λ from one pass's candidates: what every λ and k_max would have given, and the best by folds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from data.vqa.accuracy import score_answer
from data.vqa.questions import Annotation
from mcan.evaluation.every_k import PredictionsPerK
from mcan.evaluation.metrics import count_components, share_collapsed, share_components

TIE = 1e-12  # accuracies that differ by less are the same number, added up in another order


@dataclass(frozen=True)
class Row:
    """What one λ and one k_max give, rounded as an evaluation with them rounds it."""

    k_max: int
    lam: float
    accuracy: float
    accuracy_by_answer_type: dict[str, float]
    component_shares: list[float]  # of K* = 1…k_max, in percent
    collapsed_share: float


@dataclass(frozen=True)
class Pick:
    """What cross-validation picks for one k_max: λ, or None for k_max = 1, and its accuracy."""

    k_max: int
    lam: float | None  # the best over all questions
    accuracy: float  # of that λ, in percent; it was chosen on the same questions
    lam_of_folds: list[float]  # chosen without each fold in turn: its spread
    held_out_accuracy: float  # every question under the λ chosen without its fold
    held_out_error: float  # standard error of that, from fold to fold
    accuracy_of_folds: list[float]  # held out


class LambdaTable:
    """Accuracy and K* under every λ and k_max, from the candidates of every question.

    Questions (Q,) are in the order of their annotations, in which the official accuracy sums them.
    """

    def __init__(
        self,
        candidates: PredictionsPerK,
        annotations: Sequence[Annotation],
        words: Sequence[str],
        lams: Sequence[float],
    ) -> None:
        self.candidates, self.lams = candidates, list(lams)
        ids = np.array([annotation.question_id for annotation in annotations])
        self.order = np.searchsorted(candidates.question_ids.numpy(), ids)
        self.num_collapsed = candidates.num_collapsed.numpy()[self.order]
        answers = candidates.answers.numpy()[self.order]
        self.accuracy_by_size = score_candidates(annotations, answers, words)  # (Q, k_max)
        types = np.array([annotation.answer_type for annotation in annotations])
        names = dict.fromkeys(types.tolist())
        self.rows_of_type = {name: np.flatnonzero(types == name) for name in names}
        self.selected: dict[tuple[float, int], np.ndarray] = {}

    def select(self, lam: float, k_max: int) -> np.ndarray:
        """(Q,): K* of each question under λ."""
        if (lam, k_max) not in self.selected:
            selected = self.candidates.select(lam, k_max).numpy()
            self.selected[lam, k_max] = selected[self.order].astype(np.int16)  # a table of them
        return self.selected[lam, k_max]

    def accuracy(self, lam: float, k_max: int) -> np.ndarray:
        """(Q,): each question's accuracy in [0, 1] with the K* that λ selects."""
        return take(self.accuracy_by_size, self.select(lam, k_max))

    def row(self, lam: float, k_max: int) -> Row:
        """The table's row of one λ and one k_max."""
        selected, accuracy = self.select(lam, k_max), self.accuracy(lam, k_max)
        return Row(
            k_max,
            lam,
            average(accuracy),
            {name: average(accuracy[rows]) for name, rows in self.rows_of_type.items()},
            share_components(count_components(selected, k_max)),
            share_collapsed(take(self.num_collapsed, selected), selected),
        )

    def rows(self) -> list[Row]:
        """A row for every k_max up to the model's and every λ."""
        sizes = range(1, self.candidates.k_max + 1)
        return [self.row(lam, k_max) for k_max in sizes for lam in self.lams]


def take(table: np.ndarray, num_components: np.ndarray) -> np.ndarray:
    """(Q,): from each question's row (k_max,) the entry of its number of components."""
    return table[np.arange(len(table)), num_components - 1]


def score_candidates(
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


def assign_folds(image_ids: np.ndarray, num_folds: int, seed: int) -> np.ndarray:
    """(Q,): the fold of each question. An image's questions share one; sizes differ by an image."""
    images, index = np.unique(image_ids, return_inverse=True)
    if not 2 <= num_folds <= len(images):
        raise ValueError(
            f"folds is {num_folds}, expected 2 to {len(images)}, as many as there are images"
        )
    folds = np.arange(len(images)) % num_folds
    return np.random.default_rng(seed).permutation(folds)[index.reshape(-1)]


def pick_lambda(table: LambdaTable, k_max: int, folds: np.ndarray) -> Pick:
    """Cross-validate λ for one k_max; `folds` (Q,) in the table's order."""
    num_folds = int(folds.max()) + 1
    lams = table.lams if k_max > 1 else table.lams[:1]
    accuracies = [table.accuracy(lam, k_max) for lam in lams]
    sums = np.array([np.bincount(folds, each, num_folds) for each in accuracies])  # (λ, folds)
    counts = np.bincount(folds, minlength=num_folds)
    chosen = [
        best(np.delete(sums, fold, 1).sum(1) / (len(folds) - counts[fold]))
        for fold in range(num_folds)
    ]
    held_out = np.array([sums[choice, fold] for fold, choice in enumerate(chosen)])
    of_folds = 100 * held_out / counts
    overall = best(sums.sum(1) / len(folds))
    return Pick(
        k_max,
        lams[overall] if k_max > 1 else None,
        average(accuracies[overall]),
        [lams[choice] for choice in chosen] if k_max > 1 else [],
        round(100 * float(held_out.sum()) / len(folds), 2),
        round(float(of_folds.std(ddof=1)) / num_folds**0.5, 2),
        of_folds.round(2).tolist(),
    )


def best(accuracies: np.ndarray) -> int:
    """The place of the highest accuracy; of equals the last, the λ with the fewest components."""
    return int(np.flatnonzero(accuracies >= accuracies.max() - TIE)[-1])
