"""Attention as a heat map over an image, and the colours it is shown in."""

import numpy as np
from matplotlib import colormaps
from PIL import Image

# Shape letters: h and w cells, H and W pixels.

GAMMA = 0.5  # of the colour scale: the weaker of two modes must stay visible beside the stronger
STRONGEST = 0.7  # opacity at the peak: the photo still shows through
SOLID_FROM = 0.5  # the share of the scale from which on the heat is that strong
ENDS = 0.35, 0.93  # of the map: inferno's own ends are black and nearly white, as photos are
BRIGHTNESS = 0.65  # of the photo, which is grey below the heat, so that every colour is the heat's


def spread_cells(cells: np.ndarray, height: int, width: int, smooth: bool = False) -> np.ndarray:
    """Weights of cells (h, w) at the pixels (H, W): as they are, or linear in between."""
    if smooth:
        picture = Image.fromarray(cells.astype(np.float32))
        return np.asarray(picture.resize((width, height), Image.Resampling.BILINEAR), np.float64)
    rows = np.arange(height) * len(cells) // height
    columns = np.arange(width) * cells.shape[1] // width
    return np.asarray(cells[rows][:, columns])


def to_scale(heat: np.ndarray, peak: float | None = None) -> np.ndarray:
    """Any heat ≥ 0 on the colour scale: 0 for nothing, 1 for the peak, its own if none is given."""
    peak = heat.max() if peak is None else peak
    if not peak > 0:
        return np.zeros_like(heat)
    return np.asarray((heat / peak) ** GAMMA)


def shade(scaled: np.ndarray) -> np.ndarray:
    """(…) on the scale -> (…, 4): red, green, blue and opacity in [0, 1].

    The map is inferno: its lightness grows evenly, so it reads without colour vision and in print.
    """
    first, last = ENDS
    shaded = np.array(colormaps["inferno"](first + (last - first) * scaled))
    shaded[..., 3] = STRONGEST * np.minimum(scaled / SOLID_FROM, 1)
    return shaded


def dim(photo: np.ndarray) -> np.ndarray:
    """(H, W, 3) uint8 -> (H, W, 1) in [0, 1]: the photo's luminance, darkened."""
    return np.asarray(photo @ np.array([0.299, 0.587, 0.114]) / 255 * BRIGHTNESS)[..., None]


def blend(photo: np.ndarray, heat: np.ndarray, peak: float | None = None) -> np.ndarray:
    """The heat (H, W) over a photo (H, W, 3) uint8 -> (H, W, 3) uint8."""
    shaded = shade(to_scale(heat, peak))
    opacity = shaded[..., 3:]
    mixed = opacity * shaded[..., :3] + (1 - opacity) * dim(photo)
    return np.asarray(np.round(255 * mixed), np.uint8)
