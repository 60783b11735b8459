"""Where to write a label beside each of several points, so that none covers another."""

import math
from dataclasses import dataclass

import numpy as np

from figures.drawing.mixture import DrawnMixture
from figures.drawing.text import measure

DIRECTIONS = [math.radians(angle) for angle in (0, 180, 90, 270, 45, 135, 225, 315)]
STEPS = 8  # how many times further out a label may go
SMALLEST_WEIGHT = 0.005  # a mixing weight below it is written as <0.01


@dataclass(frozen=True)
class Box:
    """A rectangle around a centre."""

    x: float
    y: float
    width: float
    height: float

    def overlap(self, other: "Box") -> float:
        """The area that both cover."""
        across = (self.width + other.width) / 2 - abs(self.x - other.x)
        down = (self.height + other.height) / 2 - abs(self.y - other.y)
        return max(0.0, min(across, self.width, other.width)) * max(
            0.0, min(down, self.height, other.height)
        )

    def outside(self, width: float, height: float) -> float:
        """The area that lies outside of (0, 0, width, height)."""
        whole = Box(width / 2, height / 2, width, height)
        return self.width * self.height - self.overlap(whole)


@dataclass(frozen=True)
class Label:
    """A text in its box, and the point that it belongs to."""

    text: str
    x: float
    y: float
    box: Box


def label_weights(
    mixture: DrawnMixture, height: float, width: float, *, size: float, padding: float, dot: float
) -> list[Label]:
    """The mixing weights beside the means; the heaviest component gets the nearest place."""
    points = mixture.centres(height, width)
    return label_points(mixture.pi, points, height, width, size=size, padding=padding, dot=dot)


def label_points(
    weights: np.ndarray,
    points_xy: np.ndarray,
    height: float,
    width: float,
    *,
    size: float,
    padding: float,
    dot: float,
) -> list[Label]:
    """Weights (n,) beside points (n, 2), x and y; the heaviest gets the nearest place."""
    order = np.argsort(-weights, kind="stable")
    texts = ["<0.01" if w < SMALLEST_WEIGHT else f"{w:.2f}" for w in weights[order].tolist()]
    points = [(float(x), float(y)) for x, y in points_xy[order]]
    sizes = [(measure(text, size) + padding, size + padding - 1) for text in texts]
    boxes = place_labels(points, sizes, width, height, dot)
    return [Label(text, *at, box) for text, at, box in zip(texts, points, boxes, strict=True)]


def place_labels(
    points: list[tuple[float, float]],
    sizes: list[tuple[float, float]],
    width: float,
    height: float,
    dot: float,
) -> list[Box]:
    """A box of the given size for each point, inside (width, height) and off the dots.

    The first label goes first, each to the nearest free place; where none is free, to the one that
    covers least.
    """
    dots = [Box(x, y, dot, dot) for x, y in points]
    placed: list[Box] = []
    for point, size in zip(points, sizes, strict=True):
        choices = list_places(point, size, dot)
        costs = [
            place.outside(width, height) + sum(place.overlap(other) for other in [*dots, *placed])
            for place in choices
        ]
        placed.append(choices[costs.index(min(costs))])
    return placed


def list_places(point: tuple[float, float], size: tuple[float, float], dot: float) -> list[Box]:
    """Places around a point, nearest first, right and left before above and below."""
    (x, y), (width, height) = point, size
    places = []
    for step in range(STEPS):
        across = (width + dot) / 2 + 1 + step * width / 2
        down = (height + dot) / 2 + 1 + step * height
        for angle in DIRECTIONS:
            at = x + across * math.cos(angle), y + down * math.sin(angle)
            places.append(Box(*at, width, height))
    return places
