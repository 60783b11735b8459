"""Image files: decoded with an error that names the file, and their size as one sees them."""

from pathlib import Path

from PIL import Image

ORIENTATION = 0x0112  # EXIF
QUARTER_TURNS = (5, 6, 7, 8)  # orientations that exchange the sides


def read_image(path: str | Path) -> Image.Image:
    """A decoded picture; a broken one raises an error that names the file."""
    try:
        image = Image.open(path)
        image.load()
    except Exception as error:  # PIL raises whatever a damaged file leads to
        raise unreadable(path, error) from None
    return image


def upright_size(path: str | Path) -> tuple[int, int]:
    """Width and height as seen, EXIF orientation applied, read from the header alone."""
    try:
        with Image.open(path) as image:
            turned = image.getexif().get(ORIENTATION) in QUARTER_TURNS
            width, height = image.size
    except Exception as error:
        raise unreadable(path, error) from None
    return (height, width) if turned else (width, height)


def unreadable(path: str | Path, error: Exception) -> ValueError | FileNotFoundError:
    """The one sentence about a picture that cannot be decoded."""
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(f"{path} does not exist; expected an image")
    return ValueError(f"{path} is not a readable image: {error or type(error).__name__}")
