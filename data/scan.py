"""What a store in the making knows of its source files: which changed since it was begun."""

from pathlib import Path

from data.files import read_json, write_json
from data.store_writer import StoreWriter

State = tuple[int, int]  # size in bytes and time of the last change
Shape = tuple[int, int, int]  # (F, h, w)
Scan = dict[int, tuple[State, Shape]]  # by image id


def read_state(path: Path) -> State:
    """Give what tells a file from itself after a change."""
    try:
        status = path.stat()
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} has gone; start again with all files there") from None
    return status.st_size, status.st_mtime_ns


def forget_changed(writer: StoreWriter, before: Scan, scan: Scan) -> None:
    """Have the images written again whose files changed since; call it before `save_scan`."""
    changed = [image_id for image_id in writer.done if before.get(image_id) != scan[image_id]]
    if changed:
        writer.forget(changed)


def save_scan(record: Path, source: str, scan: Scan) -> None:
    """Write down what the files of `source` are like, one row of six numbers each."""
    rows = [[n, *state, *shape] for n, (state, shape) in scan.items()]
    write_json(record, {"source": source, "files": rows})


def recall_scan(record: Path, source: str) -> Scan:
    """Give what an interrupted run wrote down about `source`; nothing when there is nothing."""
    try:
        found = read_json(record)
        rows = found["files"] if found["source"] == source else []
        return {n: ((size, time), (f, h, w)) for n, size, time, f, h, w in rows}
    except (OSError, ValueError, KeyError, TypeError):
        return {}  # absent or damaged: the files are looked at, and copied, again
