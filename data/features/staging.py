"""Copying a feature store to a disk of this machine before training, once for all its processes."""

import os
from pathlib import Path

from tqdm import tqdm

from data.features.header import Header, read_header
from data.io.atomic_files import atomic_write
from data.io.disk_space import require_room
from data.io.locks import FileLock

PIECE = 16 << 20  # bytes copied at a time


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
    source = os.open(path, os.O_RDONLY)
    try:
        header = read_header(source, path)
        name = name_copy(path, header)
        target = folder / name
        busy = f"waiting for another process that is copying {path} to {folder}"
        with FileLock(folder / f".{name}.lock", busy, wait=True):
            if not is_copy(target, header):
                copy_file(source, header.file_bytes, target)
    finally:
        os.close(source)
    return target


def name_copy(path: Path, header: Header) -> str:
    """The name of a store's copy, which tells its contents."""
    return f"{path.stem}-{header.metadata_checksum:08x}-{header.file_bytes}{path.suffix}"


def is_staged(path: Path, folder: Path) -> bool:
    """Whether a finished copy of the store is in the folder already."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        header = read_header(descriptor, path)
    finally:
        os.close(descriptor)
    return path.parent.resolve() == folder.resolve() or is_copy(
        folder / name_copy(path, header), header
    )


def is_copy(target: Path, header: object) -> bool:
    """True when `target` is a finished store with the same header: index, size and checksums."""
    if not target.is_file():
        return False
    descriptor = os.open(target, os.O_RDONLY)
    try:
        return read_header(descriptor, target) == header
    except ValueError:
        return False  # damaged: it is copied again
    finally:
        os.close(descriptor)


def copy_file(source: int, num_bytes: int, target: Path) -> None:
    """Copy an open file to `target` with a progress bar; complete or absent."""
    for stale in target.parent.glob(f".{target.name}.*.partial"):
        stale.unlink()  # left by a process that was killed: nobody else holds the lock
    require_room(target.parent, num_bytes, f"copying {target.name}")
    with (
        atomic_write(target) as temporary,
        open(temporary, "wb") as file,
        tqdm(total=num_bytes, unit="B", unit_scale=True, desc=f"stage {target.name}") as bar,
    ):
        offset = 0
        while offset < num_bytes:
            piece = os.pread(source, PIECE, offset)
            if not piece:
                raise ValueError(f"{target.name}: the original was truncated while it was copied")
            file.write(piece)
            offset += len(piece)
            bar.update(len(piece))
