"""Checkpoints: written whole or not at all, read without running anything that lies in them."""

import os
import zipfile
from pathlib import Path
from typing import Any

import torch

from data.io.atomic_files import atomic_write, synchronise

FORMAT = 1
KIND = "continuous-visual-attention checkpoint"
FOLDER = 0x10  # among the attributes of a part of a zip archive
DAMAGED = Exception  # torch.load raises whatever a damaged pickle leads to, assertions included


class DamagedCheckpointError(ValueError):
    """A file that is truncated or whose bytes are not those that were written."""


def save_checkpoint(path: Path, content: dict[str, Any]) -> None:
    """Write through a temporary file, so that `path` is always a whole checkpoint."""
    with atomic_write(path) as temporary, open(temporary, "wb") as file:
        torch.save({"kind": KIND, "format": FORMAT, **content}, file)


def load_checkpoint(path: str | Path) -> dict[str, Any]:
    """Read a checkpoint onto the CPU; anything else raises an error with the file's name."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no checkpoint {path}")
    try:
        check_sums(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except DAMAGED as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise DamagedCheckpointError(f"{path} is not a valid checkpoint ({reason[:120]})") from None
    if not isinstance(content, dict) or str(content.get("kind")) != KIND:
        raise ValueError(
            f"{path} is not a checkpoint of this project; MCAN's own go through import-mcan"
        )
    found = str(content.get("format"))  # a text: a tensor in its place has no truth
    if found != str(FORMAT):
        raise ValueError(
            f"{path} has checkpoint format {found[:60]}, this project reads {FORMAT}; update the "
            f"project"
        )
    return content


def check_sums(path: Path) -> None:
    """Compare all bytes with their checksums, which torch.load does not: it takes damaged weights.

    Where a part is marked as a folder it reads nothing, and weights are what memory held before.
    """
    with zipfile.ZipFile(path) as archive:
        folders = [part.filename for part in archive.infolist() if part.external_attr & FOLDER]
        damaged = next(iter(folders), None) or archive.testzip()
    if damaged is not None:
        raise zipfile.BadZipFile(f"its part {damaged} is damaged")


def link_checkpoint(source: Path, target: Path) -> None:
    """Link a written checkpoint to a second name, replacing an older one atomically."""
    temporary = target.with_name(f".{target.name}.link")
    temporary.unlink(missing_ok=True)
    os.link(source, temporary)
    os.replace(temporary, target)
    synchronise(target.parent)
