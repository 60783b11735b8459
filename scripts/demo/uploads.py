"""Uploaded images: what is too large or not an image is rejected in one sentence."""

import warnings
from pathlib import Path

from PIL import Image

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP")  # decoders of others may start programs
MOST_PIXELS = 50_000_000


def read_upload(path: str | Path) -> Image.Image:
    """An uploaded image, decoded."""
    name = Path(path).name
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            picture = Image.open(path, formats=FORMATS)
            if picture.width * picture.height > MOST_PIXELS:  # known before a pixel is decoded
                picture.close()
                raise Image.DecompressionBombError
    except Image.DecompressionBombError:
        most = MOST_PIXELS // 1_000_000
        raise ValueError(
            f"{name} has more than {most} million pixels; upload a smaller image"
        ) from None
    except Exception:
        raise ValueError(
            f"{name} is not an image that can be read; upload a JPEG, PNG, WebP, GIF or BMP file"
        ) from None
    try:
        picture.load()
    except Exception as error:  # PIL raises whatever a damaged file leads to
        raise ValueError(f"{name} is damaged: {error or type(error).__name__}") from None
    return picture
