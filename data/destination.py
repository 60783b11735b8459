"""Where a large file is to go: whether it may."""

from pathlib import Path

from data.files import refuse_file_on_the_way, refuse_folder


def refuse_existing(path: Path, force: bool) -> None:
    """Raise when a finished store is already there, or no file can be."""
    refuse_file_on_the_way(path)
    refuse_folder(path)
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists already; delete it or pass force=true to replace it")
