"""Room on the disk, asked for before it is used."""

import shutil
from pathlib import Path


def format_bytes(number: float) -> str:
    """1536000 becomes "1.5 MB"."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


def find_existing(path: Path) -> Path:
    """The folder itself, or the nearest one above it that exists."""
    path = path.absolute()
    while not path.exists():
        path = path.parent
    return path


def require_room(folder: Path, needed: int, purpose: str) -> None:
    """Raise unless the disk of a folder has `needed` bytes left; the folder need not exist yet."""
    free = shutil.disk_usage(find_existing(folder)).free
    if free < needed:
        raise OSError(
            f"{purpose} needs {format_bytes(needed)} in {folder}, but only {format_bytes(free)} "
            "are free; make room or choose another folder"
        )
