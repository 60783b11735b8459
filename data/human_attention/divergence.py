"""How far apart two distributions over cells are."""

import numpy as np

NATS_PER_BIT = float(np.log(2))


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
    there = first > 0
    ratio = np.divide(first, second, out=np.ones_like(first), where=there)
    return np.asarray((first * np.log2(ratio)).sum(-1))
