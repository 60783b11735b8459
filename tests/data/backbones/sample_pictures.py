"""Random pictures, and the note of a camera that was held otherwise than upright."""

import numpy as np
from PIL import Image


def draw(width: int, height: int, seed: int = 0) -> Image.Image:
    """A picture with something in every corner, red on the left."""
    generator = np.random.default_rng(seed)
    pixels = generator.integers(0, 256, (height, width, 3), dtype=np.uint8)
    pixels[:, : width // 2, 0] = 250
    return Image.fromarray(pixels)


def turned(orientation: int) -> Image.Exif:
    """EXIF with an orientation: 6 is by a quarter, 3 upside down."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif
