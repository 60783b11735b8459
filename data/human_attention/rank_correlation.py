"""Spearman's rank correlation of maps, as VQA-HAT's authors compare attention."""

import numpy as np

from data.human_attention.vqa_hat import average_area

SIDE = 14  # maps are compared on 14 × 14 cells, whatever the grid
DECIMALS = 12  # of a map's whole mass: less does not count as attention, and equal cells are equal


def spearman(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(M, N) twice -> (M,): the correlation of ranks; NaN where one of the two is constant."""
    return correlate(average_ranks(first), average_ranks(second))


def average_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks 1…N along the last axis, equal values sharing the mean of theirs: (M, N) -> (M, N)."""
    order = values.argsort(axis=1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=1)
    place = np.arange(values.shape[1])
    differs = np.diff(ordered, axis=1) != 0
    edge = np.ones((len(values), 1), dtype=bool)
    starts = np.concatenate([edge, differs], axis=1)
    ends = np.concatenate([differs, edge], axis=1)
    first = np.maximum.accumulate(np.where(starts, place, 0), axis=1)
    last = np.minimum.accumulate(np.where(ends, place, len(place))[:, ::-1], axis=1)[:, ::-1]
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, (first + last) / 2 + 1, axis=1)
    return ranks


def correlate(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Pearson's correlation along the last axis: (M, N) twice -> (M,), NaN for a constant row."""
    first = first - first.mean(1, keepdims=True)
    second = second - second.mean(1, keepdims=True)
    scale = np.sqrt((first**2).sum(1) * (second**2).sum(1))
    product = (first * second).sum(1)
    return np.divide(product, scale, out=np.full(len(scale), np.nan), where=scale > 0)


def coarsen(picture: np.ndarray) -> np.ndarray:
    """A map (H, W) with some mass as shares of 14 × 14 areas, (196,), ready to be ranked."""
    areas = average_area(picture, SIDE, SIDE).reshape(-1)
    # Equal areas differ by rounding alone, and so do a Gaussian's cells far from its mean.
    return np.round(areas / areas.sum(), DECIMALS)
