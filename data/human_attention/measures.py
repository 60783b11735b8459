"""How alike two maps are: the Jensen–Shannon divergence, and Spearman's rank correlation."""

import numpy as np

from data.human_attention.vqa_hat import distribute

NATS_PER_BIT = float(np.log(2))
SIDE = 14  # VQA-HAT's authors compare ranks on 14 × 14 cells, whatever the grid
DECIMALS = 12  # of a map's whole mass: less does not count as attention, and equal cells are equal


def jensen_shannon(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The Jensen–Shannon divergence in bits, 0 to 1: distributions (…, L) twice -> (…).

    Its square root is the Jensen–Shannon distance. Cells where both are zero, as in padding, add
    nothing.
    """
    middle = (first + second) / 2
    bits = (relative_entropy(first, middle) + relative_entropy(second, middle)) / 2
    return np.clip(bits, 0.0, 1.0)  # only rounding leaves these bounds


def relative_entropy(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """KL(first ‖ second) in bits, where `second` is zero only where `first` is: (…, L) -> (…)."""
    ratio = np.divide(first, second, out=np.ones_like(first), where=first > 0)
    return np.asarray((first * np.log2(ratio)).sum(-1))


def coarsen(picture: np.ndarray) -> np.ndarray:
    """A map (H, W) with some mass as shares of 14 × 14 areas, (196,), ready to be ranked."""
    # Equal areas differ by rounding alone, and so do a Gaussian's cells far from its mean.
    return np.round(distribute(picture, SIDE, SIDE), DECIMALS)


def average_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks 1…N along the last axis, equal values sharing the mean of theirs: (M, N) -> (M, N)."""
    ranks = np.empty(values.shape)
    for place, row in enumerate(values):
        ordered = np.sort(row)
        num_below, num_up_to = (np.searchsorted(ordered, row, side) for side in ("left", "right"))
        ranks[place] = (num_below + 1 + num_up_to) / 2
    return ranks


def correlate(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Pearson's correlation along the last axis: (M, N) twice -> (M,), NaN for a constant row."""
    first = first - first.mean(1, keepdims=True)
    second = second - second.mean(1, keepdims=True)
    scale = np.sqrt((first**2).sum(1) * (second**2).sum(1))
    product = (first * second).sum(1)
    return np.divide(product, scale, out=np.full(len(scale), np.nan), where=scale > 0)
