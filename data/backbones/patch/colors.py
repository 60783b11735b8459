"""Names of colours: prototypes, and how much of each name a pixel carries."""

import functools

import numpy as np

# the eleven names most languages have, with a typical sRGB value
PROTOTYPES = {
    "red": (215, 35, 40),
    "orange": (250, 140, 20),
    "yellow": (250, 220, 40),
    "green": (50, 160, 70),
    "blue": (40, 90, 215),
    "purple": (125, 50, 165),
    "pink": (250, 135, 190),
    "brown": (125, 75, 35),
    "white": (245, 245, 245),
    "gray": (140, 140, 140),
    "black": (20, 20, 20),
}
NAMES = tuple(PROTOTYPES)
BITS = 5  # colours are looked up at 32 levels per channel
SHARPNESS = 60.0  # how quickly a name gives way to its neighbour


def to_lab(rgb: np.ndarray) -> np.ndarray:
    """CIE Lab (D65) of sRGB values in 0..255, (..., 3), scaled by 1/100."""
    value = np.asarray(rgb, dtype=np.float64) / 255
    linear = np.where(value > 0.04045, ((value + 0.055) / 1.055) ** 2.4, value / 12.92)
    matrix = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    xyz = linear @ matrix.T / np.array([0.9505, 1.0, 1.089])
    root = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    x, y, z = root[..., 0], root[..., 1], root[..., 2]
    return np.stack([1.16 * y - 0.16, 5 * (x - y), 2 * (y - z)], axis=-1)


@functools.cache
def _lookup_table() -> np.ndarray:
    """Share of every name for every quantised colour, (11, 32^3) float32."""
    level = (np.arange(2**BITS) + 0.5) * 2 ** (8 - BITS)
    colors = np.stack(np.meshgrid(level, level, level, indexing="ij"), axis=-1).reshape(-1, 3)
    prototypes = to_lab(np.array(list(PROTOTYPES.values())))
    distance = ((to_lab(colors) - prototypes[:, None]) ** 2).sum(axis=-1)
    share = np.exp(-SHARPNESS * (distance - distance.min(axis=0)))
    return (share / share.sum(axis=0)).astype(np.float32)


def name_pixels(pixels: np.ndarray) -> np.ndarray:
    """Share of every colour name, (11, H, W), of (H, W, 3) uint8 pixels."""
    level = (pixels >> (8 - BITS)).astype(np.int32)
    index = (level[..., 0] << 2 * BITS) | (level[..., 1] << BITS) | level[..., 2]
    return np.take(_lookup_table(), index, axis=1)
