"""Outlines of the named shapes: what the scenes draw and what the patch descriptor looks for."""

import numpy as np

Outline = np.ndarray  # (n, 2) x to the right, y downwards, within [-1, 1]


def rotate(outline: Outline, degrees: float) -> Outline:
    """Turn an outline about its centre."""
    angle = np.deg2rad(degrees)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    return outline @ turn


def trace_polar(radius: np.ndarray, angle: np.ndarray) -> Outline:
    """The polygon through points given by their distance from the centre and their angle."""
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def trace_heart(t: np.ndarray) -> Outline:
    """The curve of a heart at parameters from 0 to 2π."""
    x = 16 * np.sin(t) ** 3
    y = 13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)
    return np.stack([x / 16.5, -(y + 2.5) / 15.5], axis=1)


_TURN = np.linspace(0, 2 * np.pi, 48, endpoint=False)
_ARM = np.array([[0.33, -1.0], [0.33, -0.33], [1.0, -0.33]])  # a quarter of the cross

OUTLINES: dict[str, Outline] = {
    "circle": trace_polar(np.ones(48), _TURN),
    "square": 0.86 * np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]),
    "triangle": np.array([[0.0, -0.95], [1.0, 0.8], [-1.0, 0.8]]),
    "cross": np.concatenate([rotate(_ARM, 90.0 * quarter) for quarter in range(4)]),
    "star": trace_polar(np.tile([1.0, 0.42], 5), np.arange(10) * np.pi / 5 - np.pi / 2),
    "heart": trace_heart(_TURN),
}
SHAPES = tuple(OUTLINES)


def fill_mask(shape: str, radius: float, size: int, samples: int = 4) -> np.ndarray:
    """Coverage in [0, 1] of every pixel of a (size, size) window by a shape at its centre."""
    fine = (np.arange(size * samples) + 0.5) / samples - size / 2
    x, y = np.meshgrid(fine / radius, fine / radius)
    inside = contains(OUTLINES[shape], x, y)
    return inside.reshape(size, samples, size, samples).mean(axis=(1, 3)).astype(np.float32)


def contains(outline: Outline, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Which points lie inside a polygon: an odd number of edges to their right."""
    inside = np.zeros(x.shape, dtype=bool)
    for (x1, y1), (x2, y2) in zip(outline, np.roll(outline, -1, axis=0), strict=True):
        if y1 == y2:
            continue
        crosses = (y1 > y) != (y2 > y)
        inside ^= crosses & (x < x1 + (y - y1) * (x2 - x1) / (y2 - y1))
    return inside
