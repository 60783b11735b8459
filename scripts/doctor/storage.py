"""Where a run writes and reads: free space, and what the file system can do."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from data.features.reader import FeatureStore
from data.features.staging import is_staged
from data.io.atomic_files import check_parents
from data.io.disk_space import find_existing, format_bytes, require_room
from scripts.doctor.finding import Finding, ok, warning

NETWORK = ("nfs", "nfs4", "lustre", "gpfs", "beegfs", "cifs", "smb3", "ceph", "afs", "fuse.sshfs")


def check_runs(runs: Path, needed: int, num_checkpoints: int) -> Iterator[Finding]:
    """The folder of runs: writable, lockable, able to link, with space for the checkpoints."""
    check_parents(runs / "a run")
    place = find_existing(runs)
    try_writing(place)
    require_room(runs, needed, f"keeping {num_checkpoints} checkpoints")
    free = shutil.disk_usage(place).free
    text = (
        f"{runs} can be written; {format_bytes(free)} free, {num_checkpoints} checkpoints "
        f"need {format_bytes(needed)}"
    )
    if free < 3 * needed:
        yield warning(f"{text}: few runs fit", "free some space, or choose another folder: runs=…")
    else:
        yield ok(text)


def try_writing(folder: Path) -> None:
    """Do in a folder what a run does there, and leave nothing behind."""
    try:
        with tempfile.TemporaryDirectory(prefix=".doctor-", dir=folder) as place:
            path = Path(place, "file")
            with open(path, "wb") as file:
                file.write(b"x")
                file.flush()
                os.fsync(file.fileno())
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.link(path, Path(place, "link"))
            os.replace(path, Path(place, "renamed"))
    except OSError as error:
        raise OSError(
            f"{folder} cannot hold runs: writing, locking (flock), linking or renaming failed "
            f"there ({error.strerror or error})"
        ) from None


def check_staging(folder: Path, stores: list[Path]) -> Iterator[Finding]:
    """The node-local folder that stores are copied to first: space for those not there yet."""
    check_parents(folder / "a store")
    try_writing(find_existing(folder))
    needed = sum(path.stat().st_size for path in stores if not is_staged(path, folder))
    require_room(folder, needed, "copying the stores (runtime.stage_to)")
    yield ok(f"{folder} has space for {format_bytes(needed)} of stores still to be copied")


def check_file_system(
    store: FeatureStore, mounts: Path = Path("/proc/mounts")
) -> Iterator[Finding]:
    """Whether the store lies on a network file system and is read through a memory map."""
    kind = find_file_system(store.path, mounts)
    if kind not in NETWORK:
        return
    if store.reader == "mmap":
        yield warning(
            f"{store.path} lies on {kind}, where a memory map is slow",
            "runtime.reader=pread, or runtime.stage_to=<folder on a local disk>",
        )
    else:
        yield ok(f"{store.path} lies on {kind} and is read with pread")


def find_file_system(path: Path, mounts: Path) -> str:
    """The type of the file system that holds a path; empty where the system does not say."""
    try:
        lines = [line.split() for line in mounts.read_text(encoding="utf-8").splitlines()]
    except OSError:
        return ""
    path = path.resolve()
    containing = [
        (len(line[1]), line[2])
        for line in lines
        if len(line) > 2 and path.is_relative_to(line[1].replace("\\040", " "))  # an escaped space
    ]
    return max(containing)[1] if containing else ""
