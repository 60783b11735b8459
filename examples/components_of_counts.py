"""Does the number of components follow the number of things that a question asks about?

    make attention CHECKPOINT=runs/<name>
    .venv/bin/python -m examples.components_of_counts runs/<name>/attention/val.h5 <data folder>

For the questions of val that count ("how many"): the mean K* by the number that was counted, once
with a constant λ, and once with a λ that is a share of what the image's likelihood gains between
one component and the most. `make attention` keeps the candidates, so that nothing is fitted again.
"""

import sys
from collections.abc import Iterable

import h5py
import numpy as np

from data.vqa.data_folder import DataFolder
from mcan.evaluation.metrics import counted_objects

GROUPS = {"none": (0, 0), "one": (1, 1), "two": (2, 2), "3, 4": (3, 4), "more": (5, np.inf)}
LAMS = (0.05, 0.1, 0.2, 0.5, 1.0)
SHARES = (0.1, 0.2, 0.3, 0.5)


def main() -> None:
    """Print a line for each rule."""
    if len(sys.argv) != 3:
        sys.exit("usage: python -m examples.components_of_counts <attention/val.h5> <data folder>")
    arrays, root = sys.argv[1:]
    try:
        with h5py.File(arrays) as file:
            question_ids = file["question_ids"][:].tolist()
            log_likelihood = file["candidates/log_likelihood"][:]  # (Q, k_max)
    except (OSError, KeyError) as error:
        sys.exit(f"error: {arrays} is no file of make attention with candidates: {error}")
    counted = counted_objects(DataFolder(root).read_annotations("val"))
    rows = [row for row, number in enumerate(question_ids) if number in counted]
    counts = np.array([counted[question_ids[row]] for row in rows])
    groups = [(low <= counts) & (counts <= high) for low, high in GROUPS.values()]
    print_line("λ", GROUPS, "correlation")
    print_line("questions", [int(group.sum()) for group in groups], "")
    for rule, selected in select_by_every_rule(log_likelihood[rows]).items():
        means = [f"{selected[group].mean():.2f}" if group.any() else "–" for group in groups]
        print_line(rule, means, correlate(selected, counts, log_likelihood.shape[1]))


def select_by_every_rule(log_likelihood: np.ndarray) -> dict[str, np.ndarray]:
    """(Q,) K* = argmin −2 log-likelihood + λk, by how λ is chosen."""
    gain = 2 * (log_likelihood[:, -1:] - log_likelihood[:, :1]).clip(min=0)  # (Q, 1)
    lams = {f"{lam:g}": np.full_like(gain, lam) for lam in LAMS}
    lams |= {f"{share:.0%} of the gain": share * gain for share in SHARES}
    sizes = np.arange(1, log_likelihood.shape[1] + 1)
    return {rule: (lam * sizes - 2 * log_likelihood).argmin(1) + 1 for rule, lam in lams.items()}


def correlate(selected: np.ndarray, counts: np.ndarray, k_max: int) -> str:
    """Pearson's correlation of K* (Q,) and the counts (Q,), no more than there are components.

    A dash where either is the same for all questions: it is not defined then.
    """
    clipped = counts.clip(1, k_max)
    if selected.std() == 0 or clipped.std() == 0:
        return "–"
    return f"{np.corrcoef(selected, clipped)[0, 1]:.2f}"


def print_line(name: str, cells: Iterable[object], last: str) -> None:
    """A line of the table."""
    print(f"{name:<20}" + "".join(f"{cell!s:>8}" for cell in cells) + f"{last:>14}")


if __name__ == "__main__":
    main()
