"""A fixed bank of shape templates and how well they match an image at every pixel.

Legend: H, W pixels; S shapes; R radii.
"""

import functools
from collections.abc import Iterator, Sequence

import numpy as np

from data.backbones.patch.outlines import SHAPES, fill_mask

RADII = (11.2, 16.5)  # pixels
FLATNESS = 0.02  # variance per pixel that keeps a flat window from matching by its noise


@functools.cache
def template_bank() -> tuple[tuple[int, np.ndarray], ...]:
    """For each radius the window's half width and its zero-mean, unit-norm templates (S, n, n)."""
    bank = []
    for radius in RADII:
        half = int(np.ceil(1.2 * radius))
        masks = np.stack([fill_mask(shape, radius, 2 * half + 1) for shape in SHAPES])
        masks -= masks.mean(axis=(1, 2), keepdims=True)
        masks /= np.sqrt((masks**2).sum(axis=(1, 2), keepdims=True))
        bank.append((half, masks))
    return tuple(bank)


@functools.lru_cache(maxsize=16)
def _template_spectra(height: int, width: int) -> np.ndarray:
    """Conjugate spectra of all templates, centred on the origin, (R, S, H, W/2+1)."""
    spectra = []
    for half, masks in template_bank():
        canvas = np.zeros((len(masks), height, width), dtype=np.float32)
        canvas[:, : 2 * half + 1, : 2 * half + 1] = masks
        spectra.append(np.fft.rfft2(np.roll(canvas, (-half, -half), axis=(1, 2))).conj())
    return np.stack(spectra).astype(np.complex64)


def match_templates(figure: np.ndarray) -> np.ndarray:
    """Normalised correlation of (H, W) with every template at every pixel, (R, S, H, W)."""
    height, width = figure.shape
    margin = max(half for half, _ in template_bank())  # the transform wraps round
    # sides that are multiples of 16 transform fast
    edges = [(0, margin + -(side + margin) % 16) for side in figure.shape]
    padded = np.pad(figure, edges).astype(np.float32)
    product = np.fft.rfft2(padded) * _template_spectra(*padded.shape)
    raw = np.fft.irfft2(product, s=padded.shape)[..., :height, :width]
    return np.asarray(raw / measure_spread(figure)[:, None], dtype=np.float32)


def measure_spread(figure: np.ndarray) -> np.ndarray:
    """Norm of the zero-mean window around every pixel, of every radius, (R, H, W)."""
    halves = [half for half, _ in template_bank()]
    sums = sum_windows(np.stack([figure, figure**2]), halves)
    areas = [(2 * half + 1) ** 2 for half in halves]
    return np.stack(
        [
            np.sqrt(np.maximum(squares - total**2 / area, 0) + FLATNESS * area)
            for (total, squares), area in zip(sums, areas, strict=True)
        ]
    )


def sum_windows(maps: np.ndarray, halves: Sequence[int]) -> Iterator[np.ndarray]:
    """For each half, sums over the (2·half+1)² window around every pixel of (n, H, W).

    Nothing lies outside the image. One table of cumulated sums serves windows of all sizes.
    """
    height, width = maps.shape[1:]
    most = max(halves)
    edge = (most + 1, most)
    table = np.pad(maps.astype(np.float64), ((0, 0), edge, edge)).cumsum(axis=1).cumsum(axis=2)
    for half in halves:
        low, high = most - half, most + half + 1
        above, below = table[:, low : low + height], table[:, high : high + height]
        right, left = slice(high, high + width), slice(low, low + width)
        yield below[..., right] - above[..., right] - below[..., left] + above[..., left]


def spread_maximum(values: np.ndarray, reach: int) -> np.ndarray:
    """Highest value within `reach` pixels along both axes of every pixel, (H, W)."""
    for _ in range(2):
        padded = np.pad(values, ((reach, reach), (0, 0)), constant_values=-np.inf)
        shifted = (padded[start : start + len(values)] for start in range(2 * reach + 1))
        values = functools.reduce(np.maximum, shifted).T
    return values
