"""Checkpoints: written whole or not at all, read without running anything that lies in them."""

import contextlib
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

FORMAT = 1
KIND = "continuous-visual-attention checkpoint"
UNSOUND = Exception  # torch.load raises whatever a damaged pickle leads to, assertions included


class DamagedCheckpointError(ValueError):
    """A file that is truncated or whose bytes are not those that were written."""


def save_checkpoint(path: Path, content: dict[str, Any]) -> None:
    """Write through a temporary file, so that `path` is always a whole checkpoint."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary, open(temporary, "wb") as file:
        torch.save({"kind": KIND, "format": FORMAT, **content}, file)
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path; it becomes `path` once all is written, else `path` stays as it was."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield temporary
        os.replace(temporary, path)
        sync_folder(path.parent)
    except (OSError, RuntimeError) as error:
        reason = refusal_of_system(error)
        if reason is None:
            raise
        raise OSError(f"{path} cannot be written: {reason}") from error
    finally:
        with contextlib.suppress(OSError):  # on a disk that became read-only
            temporary.unlink(missing_ok=True)


def refusal_of_system(error: BaseException | None) -> str | None:
    """What the system said, under whatever torch's archive writer said after it."""
    while error is not None and not (isinstance(error, OSError) and error.strerror):
        error = error.__context__
    return error.strerror if isinstance(error, OSError) else None


def load_checkpoint(path: str | Path) -> dict[str, Any]:
    """Read a checkpoint onto the CPU; anything else is refused with the file's name."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no checkpoint {path}")
    try:
        check_sums(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except UNSOUND as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise DamagedCheckpointError(f"{path} is not a sound checkpoint ({reason[:120]})") from None
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise ValueError(
            f"{path} is no checkpoint of this project; MCAN's own go through import-mcan"
        )
    if content.get("format") != FORMAT:
        raise ValueError(
            f"{path} has checkpoint format {content.get('format')}, this project reads {FORMAT}; "
            f"update the project"
        )
    return content


def check_sums(path: Path) -> None:
    """Compare all bytes with their checksums: torch.load does not, and takes flipped weights."""
    with zipfile.ZipFile(path) as archive:
        damaged = archive.testzip()
    if damaged is not None:
        raise zipfile.BadZipFile(f"its part {damaged} is damaged")


def link_checkpoint(source: Path, target: Path) -> None:
    """Give a written checkpoint a second name, replacing what had it in one move."""
    temporary = target.with_name(f".{target.name}.link")
    temporary.unlink(missing_ok=True)
    os.link(source, temporary)
    os.replace(temporary, target)
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Ask the disk to keep the folder's list of names."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
