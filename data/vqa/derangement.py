"""Every question with another one: whose image, or whose map, a control gives it."""

import numpy as np


def derange(image_ids: np.ndarray, seed: int = 0) -> np.ndarray:
    """Pair every question (Q,) with another one, each once; of another image where possible.

    With the questions of an image side by side, a shift by the largest number of them leads every
    question out of its image, unless that one image has more than half of all.
    """
    count = len(image_ids)
    if count < 2:
        raise ValueError(f"a control with another question needs at least two, found {count}")
    _, image, sizes = np.unique(image_ids, return_inverse=True, return_counts=True)
    shuffled = np.random.default_rng(seed).permutation(len(sizes))
    order = np.argsort(shuffled[image], kind="stable")
    shift = min(int(sizes.max()), count // 2)
    partners = np.empty(count, dtype=np.int64)
    partners[order] = np.roll(order, -shift)
    return partners
