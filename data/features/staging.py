"""Copying a feature store to a disk of this machine before training, once for all its processes."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from data.features.header import Header, open_store_file
from data.io.atomic_files import atomic_write
from data.io.disk_space import require_room
from data.io.locks import FileLock

PIECE = 16 << 20  # bytes copied at a time
SLOWEST = 25e6  # bytes per second, from a shared file system that is busy


def stage_stores(paths: Sequence[Path], folder: str | Path | None) -> float:
    """Copy stores to the folder, if one is given; how many minutes another machine may need.

    Call it before processes join: they would wait for each other's copies, and give up. A store
    that is not there is reported by those who open it.
    """
    if folder is None:
        return 0.0
    there = [path for path in dict.fromkeys(paths) if path.is_file()]
    for path in there:
        stage_store(path, folder)
    return sum(path.stat().st_size for path in there) / SLOWEST / 60


def stage_store(path: str | Path, folder: str | Path) -> Path:
    """Copy the store into `folder` unless it is there already; give the copy's path.

    The copy is named after its contents, so that stores of one name do not displace each other; of
    several processes one copies while the others wait.
    """
    path, folder = Path(path), Path(folder)
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist, so it cannot be copied to {folder}")
    folder.mkdir(parents=True, exist_ok=True)
    if path.parent.resolve() == folder.resolve():
        return path
    with open_store_file(path) as (source, header):
        target = name_copy(path, folder, header)
        busy = f"waiting for another process that is copying {path} to {folder}"
        with FileLock(folder / f".{target.name}.lock", busy, wait=True):
            if not is_copy(target, header):
                copy_file(source, header.file_bytes, target)
    return target


def name_copy(path: Path, folder: Path, header: Header) -> Path:
    """Where a store's copy is; its name tells its contents."""
    return folder / f"{path.stem}-{header.metadata_checksum:08x}-{header.file_bytes}{path.suffix}"


def is_staged(path: Path, folder: Path) -> bool:
    """Whether a finished copy of the store is in the folder already."""
    with open_store_file(path) as (_, header):
        here = path.parent.resolve() == folder.resolve()
        return here or is_copy(name_copy(path, folder, header), header)


def is_copy(target: Path, header: Header) -> bool:
    """True when `target` is a finished store with the same header: index, size and checksums."""
    try:
        with open_store_file(target) as (_, found):
            return found == header
    except (FileNotFoundError, ValueError):
        return False  # absent, or damaged and to be copied again


def copy_file(source: int, num_bytes: int, target: Path) -> None:
    """Copy an open file to `target` with a progress bar; complete or absent."""
    for stale in target.parent.glob(f".{target.name}.*.partial"):
        stale.unlink()  # left by a process that was killed: nobody else holds the lock
    require_room(target.parent, num_bytes, f"copying {target.name}")
    with (
        atomic_write(target) as temporary,
        open(temporary, "wb") as file,
        os.fdopen(os.dup(source), "rb") as original,
        tqdm.wrapattr(file, "write", num_bytes, desc=f"stage {target.name}") as counted,
    ):
        shutil.copyfileobj(original, counted, PIECE)
        if file.tell() != num_bytes:
            raise ValueError(f"{target.name}: the original was changed while it was copied")
