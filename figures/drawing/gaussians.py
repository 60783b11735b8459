"""A mixture of Gaussians as it is drawn: its density at pixels, its ellipses in pixels."""

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
class Gaussians:
    """pi (K,), mu (K, 2), sigma (K, 2, 2): the components in use, and no others."""

    pi: np.ndarray
    mu: np.ndarray
    sigma: np.ndarray

    def at_pixels(self, height: int, width: int) -> np.ndarray:
        """(H, W): the density at the centres of the pixels, Eq. (4)."""
        rows = ((np.arange(height) + 0.5) / height)[:, None]
        columns = ((np.arange(width) + 0.5) / width)[None]
        density = np.zeros((height, width))
        for pi, (row, column), sigma in zip(self.pi, self.mu, self.sigma, strict=True):
            if np.linalg.det(sigma) < SINGULAR:
                sigma = sigma + np.sqrt(SINGULAR) * np.eye(2)
            precision = np.linalg.inv(sigma)
            u, v = rows - row, columns - column
            mahalanobis = precision[0, 0] * u**2 + precision[1, 1] * v**2
            mahalanobis = mahalanobis + 2 * precision[0, 1] * (u * v)
            scale = pi / (2 * np.pi * np.sqrt(np.linalg.det(sigma)))
            density += scale * np.exp(-0.5 * mahalanobis)
        return density

    def centres(self, height: float, width: float) -> np.ndarray:
        """(K, 2): x and y of the means in pixels."""
        return self.mu[:, ::-1] * (width, height)

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
