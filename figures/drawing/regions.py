"""Weighted boxes as they are drawn: their weight at pixels, the outlines of the heaviest."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from figures.drawing.labels import Label, label_points

# Shape letters: n regions, H and W pixels.

MOST_OUTLINES = 5
LEAST_SHARE = 0.2  # of the heaviest region's weight; lighter ones have no outline
THINNEST, THICKEST = 0.6, 2.0  # of an outline, in points


@dataclass(frozen=True)
class Regions:
    """weights (n,), and boxes (n, 4): x1, y1, x2, y2 in [0, 1] of the image."""

    weights: np.ndarray
    boxes: np.ndarray

    def at_pixels(self, height: int, width: int) -> np.ndarray:
        """(H, W): the weights of all boxes that cover the centre of a pixel, added up."""
        rows = ((np.arange(height) + 0.5) / height)[:, None]
        columns = ((np.arange(width) + 0.5) / width)[:, None]
        left, top, right, bottom = self.boxes.T
        down = (top <= rows) & (rows < bottom)  # (H, n)
        across = (left <= columns) & (columns < right)  # (W, n)
        return np.asarray((down * self.weights) @ across.T.astype(np.float64))

    def strongest(self) -> "Regions":
        """The heaviest regions, those that are outlined."""
        order = np.argsort(-self.weights, kind="stable")[:MOST_OUTLINES]
        kept = order[self.weights[order] >= LEAST_SHARE * self.weights.max()]
        return Regions(self.weights[kept], self.boxes[kept])

    def outlines(self, height: float, width: float) -> Iterator[tuple[float, ...]]:
        """Left, top, width and height of each box, and its share of the heaviest one's weight."""
        scaled = self.boxes * (width, height, width, height)
        for (left, top, right, bottom), weight in zip(scaled.tolist(), self.weights, strict=True):
            yield left, top, right - left, bottom - top, float(weight / self.weights.max())

    def labels(self, height: float, width: float, *, size: float, padding: float) -> list[Label]:
        """The weights beside the upper left corners."""
        corners = self.boxes[:, :2] * (width, height)
        return label_points(
            self.weights, corners, height, width, size=size, padding=padding, dot=0.0
        )
