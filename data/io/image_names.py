"""Which image a file holds, by its name: COCO's names, or plain numbers."""

import re
from pathlib import Path

ENDINGS = {".jpg", ".jpeg", ".png"}  # or in capitals, as cameras write them
IMAGE_NAME = re.compile(r"(?:COCO_\w+_)?0*(\d+)", re.ASCII)  # COCO_val2014_000000000042, or 42


def is_image(path: Path) -> bool:
    """Whether a file has the ending of an image."""
    return path.suffix.lower() in ENDINGS


def read_image_id(path: Path) -> int | None:
    """The image id in a file's name; None where it is named otherwise."""
    match = IMAGE_NAME.fullmatch(path.stem)
    return int(match[1]) if match else None
