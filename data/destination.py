"""Where a large file is to go: whether it may, and whether there is room."""

import shutil
from pathlib import Path


def refuse_existing(path: Path, force: bool) -> None:
    """Raise when a finished store is already there."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name the file to write")
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists already; delete it or pass force=true to replace it")


def refuse_full_disk(path: Path, num_bytes: int) -> None:
    """Raise when the disk that `path` is on has no room for `num_bytes` more."""
    path.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(path.parent).free
    if free < num_bytes:
        raise OSError(
            f"{path} needs {num_bytes / 1e9:.1f} GB, but its disk has {free / 1e9:.1f} GB free"
        )
