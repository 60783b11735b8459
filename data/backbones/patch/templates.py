"""A fixed bank of shape templates and how well they match an image at every pixel.

Legend: H, W pixels; S shapes; R radii.
"""

import functools

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
    spread = np.stack([measure_spread(figure, half) for half, _ in template_bank()])
    return np.asarray(raw / spread[:, None], dtype=np.float32)


def measure_spread(figure: np.ndarray, half: int) -> np.ndarray:
    """Norm of the zero-mean window around every pixel, (H, W)."""
    area = (2 * half + 1) ** 2
    total, squares = sum_windows(figure, half), sum_windows(figure**2, half)
    return np.sqrt(np.maximum(squares - total**2 / area, 0) + FLATNESS * area)


def sum_windows(values: np.ndarray, half: int) -> np.ndarray:
    """Sum over the (2·half+1)² window around every pixel; nothing lies outside the image."""
    padded = np.pad(values.astype(np.float64), ((half + 1, half), (half + 1, half)))
    table = padded.cumsum(axis=0).cumsum(axis=1)
    n = 2 * half + 1
    return np.asarray(table[n:, n:] - table[:-n, n:] - table[n:, :-n] + table[:-n, :-n])


def spread_maximum(values: np.ndarray, reach: int) -> np.ndarray:
    """Highest value within `reach` pixels along both axes of every pixel, (H, W)."""
    for _ in range(2):
        padded = np.pad(values, ((reach, reach), (0, 0)), constant_values=-np.inf)
        shifted = (padded[start : start + len(values)] for start in range(2 * reach + 1))
        values = functools.reduce(np.maximum, shifted).T
    return values
