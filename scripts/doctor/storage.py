"""Where a training writes and reads: room, what the file system can do, and how fast it is."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from data.files import refuse_file_on_the_way
from data.room import format_bytes, require_room
from data.stage import is_staged
from data.store import FeatureStore
from scripts.doctor.finding import Finding, catch, doubtful, good, wrong

NETWORK = ("nfs", "nfs4", "lustre", "gpfs", "beegfs", "cifs", "smb3", "ceph", "afs", "fuse.sshfs")


def check_runs(runs: Path, needed: int, num_checkpoints: int) -> Iterator[Finding]:
    """The folder of runs: writable, lockable, able to link, with room for the checkpoints."""

    def check() -> Iterator[Finding]:
        refuse_file_on_the_way(runs / "a run")
        place = find_existing(runs)
        try_out(place)
        require_room(runs, needed, f"keeping {num_checkpoints} checkpoints")
        free = os.statvfs(place).f_bavail * os.statvfs(place).f_frsize
        text = (
            f"{runs} can be written; {format_bytes(free)} free, {num_checkpoints} checkpoints "
            f"need {format_bytes(needed)}"
        )
        if free < 3 * needed:
            yield doubtful(f"{text}: few runs fit", "make room, or choose another folder: runs=…")
        else:
            yield good(text)

    return catch(check, "choose a folder with room that you may write to: runs=…")


def find_existing(path: Path) -> Path:
    """The folder itself, or the nearest one above it that is there."""
    path = path.absolute()
    while not path.exists():
        path = path.parent
    return path


def try_out(folder: Path) -> None:
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
    """The node-local folder that stores are copied to first: room for those not there yet."""

    def check() -> Iterator[Finding]:
        refuse_file_on_the_way(folder / "a store")
        try_out(find_existing(folder))
        needed = sum(path.stat().st_size for path in stores if not is_staged(path, folder))
        require_room(folder, needed, "copying the stores (runtime.stage_to)")
        yield good(f"{folder} has room for {format_bytes(needed)} of stores still to be copied")

    return catch(check, "name a local disk with more room, or leave runtime.stage_to=null")


def check_file_system(
    store: FeatureStore, mounts: Path = Path("/proc/mounts")
) -> Iterator[Finding]:
    """Whether the store lies on a network file system that is read through a memory map."""
    kind = find_file_system(store.path, mounts)
    if kind not in NETWORK:
        return
    if store.reader == "mmap":
        yield doubtful(
            f"{store.path} lies on {kind}, where a memory map is slow",
            "runtime.reader=pread, or runtime.stage_to=<folder on a local disk>",
        )
    else:
        yield good(f"{store.path} lies on {kind} and is read with pread")


def find_file_system(path: Path, mounts: Path) -> str:
    """The type of the file system that holds a path; empty where the system does not say."""
    try:
        lines = [line.split() for line in mounts.read_text(encoding="utf-8").splitlines()]
    except OSError:
        return ""
    path = path.resolve()
    inside = [
        (len(line[1]), line[2]) for line in lines if len(line) > 2 and is_inside(path, line[1])
    ]
    return max(inside)[1] if inside else ""


def is_inside(path: Path, mount: str) -> bool:
    """Whether a path lies under a mount point, as /proc/mounts writes it."""
    return path.is_relative_to(mount.replace("\\040", " "))


def judge_rate(store: FeatureStore, rate: float, num_questions: int) -> Finding:
    """Whether reading every question's image at `rate` bytes a second takes too long."""
    mean = store.header.data_bytes / len(store)
    hours = num_questions * mean / rate / 3600
    text = f"{rate / 1e6:,.0f} MB/s, {rate / mean:,.0f} questions/s, {hours:.2f} h an epoch"
    if hours > 2:
        return doubtful(
            f"{store.path} is read from disk at {text}: loading will decide how long it takes",
            "runtime.stage_to=<folder on a local disk>, runtime.reader=pread, more loader_threads",
        )
    return good(f"{store.path} is read from disk at {text}")


def report_damage(store: FeatureStore, image_ids: list[int]) -> Finding:
    """Images whose rows are not what was written."""
    return wrong(
        f"{store.path}: {len(image_ids)} of the images that were read do not match their "
        f"checksums, such as {image_ids[0]}",
        f"copy or make the store again; make verify-features STORE={store.path} checks all of it",
    )
