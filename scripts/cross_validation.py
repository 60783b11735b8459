"""λ by cross-validation: chosen on all folds but one, judged on that one, fold by fold."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scripts.lambda_table import LambdaTable, average

TIE = 1e-12  # accuracies that differ by less are the same number, added up in another order


@dataclass(frozen=True)
class Pick:
    """The λ of one k_max. With k_max = 1 there is nothing to select, and λ is None."""

    k_max: int
    lam: float | None  # the best over all questions
    accuracy: float  # of that λ, in percent; it was chosen on the same questions
    lam_of_folds: list[float]  # chosen without each fold in turn: its spread
    held_out_accuracy: float  # every question under the λ chosen without its fold
    held_out_error: float  # standard error of that, from fold to fold
    accuracy_of_folds: list[float]  # held out


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


def best(accuracies: Sequence[float] | np.ndarray) -> int:
    """The place of the highest accuracy; of equals the last, the λ with the fewest components."""
    accuracies = np.asarray(accuracies)
    return int(np.flatnonzero(accuracies >= accuracies.max() - TIE)[-1])
