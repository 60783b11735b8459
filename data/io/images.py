"""Image files: decoded with an error that names the file, and their size as one sees them."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

Picture = Image.Image  # for packages that pass images on and do not import PIL

ORIENTATION = 0x0112  # EXIF
QUARTER_TURNS = (5, 6, 7, 8)  # orientations that exchange the sides


def read_image(path: str | Path) -> Image.Image:
    """A decoded image; a broken one raises an error that names the file."""
    with errors_naming(path):
        image = Image.open(path)
        image.load()
    return image


def upright_size(path: str | Path) -> tuple[int, int]:
    """Width and height as seen, EXIF orientation applied, read from the header alone."""
    with errors_naming(path), Image.open(path) as image:
        turned = image.getexif().get(ORIENTATION) in QUARTER_TURNS
        width, height = image.size
    return (height, width) if turned else (width, height)


def check_image(path: str | Path) -> tuple[int, int]:
    """The upright size of an image whose every byte can be decoded; any other raises."""
    size = upright_size(path)
    with errors_naming(path), Image.open(path) as image:
        image.draft(None, (1, 1))  # JPEG: all of the file, an eighth of the resolution
        image.load()
    return size


def to_rgb(image: Image.Image) -> Image.Image:
    """Upright RGB: EXIF orientation applied, transparency over white, greys repeated."""
    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I"):  # 16 bits per pixel, which PIL would clip rather than scale
        image = Image.fromarray((np.asarray(image) >> 8).clip(0, 255).astype(np.uint8))
    if "A" in image.getbands() or "transparency" in image.info:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, (255, 255, 255, 255))
        image = Image.alpha_composite(white, image)
    return image.convert("RGB")


@contextlib.contextmanager
def errors_naming(path: str | Path) -> Iterator[None]:
    """Turn whatever PIL raises on a damaged file into a sentence that names it."""
    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist; expected an image") from None
    except UnidentifiedImageError:  # whose message names the file again
        raise ValueError(f"{path} is not a readable image: its format is unknown") from None
    except Exception as error:
        problem = str(error) or type(error).__name__
        raise ValueError(f"{path} is not a readable image: {problem}") from None
