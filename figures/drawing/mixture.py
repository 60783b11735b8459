"""A mixture as it is drawn: its density at pixels, the outlines of its components in pixels."""

import math
from dataclasses import dataclass

import numpy as np

# Shape letters: K components, H and W pixels. Coordinates are (row, column) in [0, 1] of the image.

SINGULAR = 1e-16  # a head without a floor may leave a covariance that has no inverse


@dataclass(frozen=True)
class Outline:
    """An ellipse in pixels: centre, full lengths of both axes, and the angle of the first."""

    x: float
    y: float
    width: float
    height: float
    angle: float  # degrees from the x axis towards the y axis, which points down


@dataclass(frozen=True)
class DrawnMixture:
    """pi (K,), mu (K, 2), sigma (K, 2, 2): the components in use, and no others.

    They are Gaussians, or with a support truncated paraboloids: zero from the squared Mahalanobis
    distance `support` on.
    """

    pi: np.ndarray
    mu: np.ndarray
    sigma: np.ndarray
    support: float | None = None

    def at_pixels(self, height: int, width: int) -> np.ndarray:
        """(H, W): the density at the centres of the pixels, Eq. (4)."""
        density = np.zeros((height, width))
        for k in range(len(self.pi)):
            density += self.pi[k] * self.component_at_pixels(k, height, width)
        return density

    def component_at_pixels(self, k: int, height: int, width: int) -> np.ndarray:
        """(H, W): the density of component k at the centres of the pixels."""
        (row, column), sigma = self.mu[k], self.sigma[k]
        if np.linalg.det(sigma) < SINGULAR:
            sigma = sigma + np.sqrt(SINGULAR) * np.eye(2)
        precision, area = np.linalg.inv(sigma), np.sqrt(np.linalg.det(sigma))
        u = ((np.arange(height) + 0.5) / height)[:, None] - row
        v = ((np.arange(width) + 0.5) / width)[None] - column
        mahalanobis = precision[0, 0] * u**2 + precision[1, 1] * v**2
        mahalanobis = mahalanobis + 2 * precision[0, 1] * (u * v)
        if self.support is None:
            return np.asarray(np.exp(-0.5 * mahalanobis) / (2 * np.pi * area))
        paraboloid = (1 - mahalanobis / self.support).clip(min=0) / (self.support / 2)
        if not paraboloid.any() and 0 <= row < 1 and 0 <= column < 1:
            # between the centres of pixels: all its mass is in the pixel of its mean
            paraboloid[int(row * height), int(column * width)] = np.pi * area * height * width
        return np.asarray(paraboloid / (np.pi * area))

    def centres(self, height: float, width: float) -> np.ndarray:
        """(K, 2): x and y of the means in pixels."""
        return self.mu[:, ::-1] * (width, height)

    @property
    def outlined_deviations(self) -> tuple[float, ...]:
        """How many σ from its mean a component is outlined: at one and two, or at its edge."""
        return (1.0, 2.0) if self.support is None else (math.sqrt(self.support),)

    def outline(self, k: int, height: float, width: float, deviations: float) -> Outline:
        """Where component k is `deviations` σ from its mean.

        An image need not be square, so the axes are those of the covariance in pixels.
        """
        to_pixels = np.array([[0.0, width], [height, 0.0]])  # (row, column) to (x, y)
        variances, axes = np.linalg.eigh(to_pixels @ self.sigma[k] @ to_pixels.T)
        lengths = 2 * deviations * np.sqrt(variances.clip(min=0))
        x, y = self.centres(height, width)[k]
        angle = np.degrees(np.arctan2(axes[1, 1], axes[0, 1]))
        return Outline(float(x), float(y), float(lengths[1]), float(lengths[0]), float(angle))
