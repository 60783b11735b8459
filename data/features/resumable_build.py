"""Filling a store from a folder of files, resumed where a killed run stopped."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeVar

from tqdm import tqdm

from data.features.dtype import DEFAULT
from data.features.manifest import STRIDE
from data.features.writer import COMMIT_BYTES, StoreWriter
from data.io.atomic_files import check_output_file, read_json, write_json
from data.io.threads import FILES_AT_A_TIME, run_threads
from data.vqa.json_entries import LARGEST_ID

State = tuple[int, int]  # size in bytes and time of the last change
Shape = tuple[int, int, int]  # (F, h, w)
Scan = dict[int, tuple[State, Shape]]  # by image id
Found = TypeVar("Found")
WORTH_WAITING = 0.002  # seconds per file; one in memory takes a fraction of a millisecond
Fill = Callable[[StoreWriter, list[int]], Iterable[object]]


@dataclass(frozen=True, kw_only=True)
class StoreFiller:
    """One store to be made from the files of one folder; `details` say what else it depends on."""

    output: Path
    folder: Path
    backbone: str
    resize: Sequence[int] | None = None
    stride: int = STRIDE
    dtype: str = DEFAULT.name
    details: str = ""
    force: bool = False
    commit_bytes: int = COMMIT_BYTES

    def __post_init__(self) -> None:
        check_output_file(self.output, self.force)

    @property
    def origin(self) -> str:
        """The folder by its full name."""
        return str(self.folder.resolve())

    @property
    def record(self) -> Path:
        """Where it is written down what the files are like."""
        return self.output.with_name(self.output.name + ".scan")

    def recall(self) -> Scan:
        """What an interrupted run wrote down about the files."""
        return recall_scan(self.record, self.origin)

    def fill(self, scan: Scan, fill: Fill, title: str) -> int:
        """Have every image of `scan` written that is not yet; the number of them.

        `fill(writer, image_ids)` writes these images in any order, and yields once for each.
        """
        before = self.recall()
        with StoreWriter(
            self.output,
            {image_id: (height, width) for image_id, (_, (_, height, width)) in scan.items()},
            next(iter(scan.values()))[1][0],
            source=f"{self.origin} ({len(scan)} files){self.details}",
            backbone=self.backbone,
            resize=self.resize,
            stride=self.stride,
            dtype=self.dtype,
            force=self.force,
            resume=True,
            commit_bytes=self.commit_bytes,
        ) as writer:
            # before the new record: a file that changed since it was written is written again
            writer.forget([n for n in writer.done if before.get(n) != scan[n]])
            save_scan(self.record, self.origin, scan)
            missing = [image_id for image_id in scan if image_id not in writer.done]
            done = len(scan) - len(missing)
            with tqdm(total=len(scan), initial=done, desc=title, unit="image") as bar:
                for _ in fill(writer, missing):
                    bar.update()
        self.record.unlink()
        return len(missing)


def read_state(path: Path) -> State:
    """Size and time of change, by which a changed file is detected."""
    try:
        status = path.stat()
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} has gone; start again with all files there") from None
    return status.st_size, status.st_mtime_ns


def save_scan(record: Path, source: str, scan: Scan) -> None:
    """Write down what the files of `source` are like, one row of six numbers each."""
    rows = [[n, *state, *shape] for n, (state, shape) in scan.items()]
    write_json(record, {"source": source, "files": rows})


def recall_scan(record: Path, source: str) -> Scan:
    """What an interrupted run wrote down about `source`; empty when there is none."""
    try:
        found = read_json(record)
        rows = found["files"] if found["source"] == source else []
        return {n: ((size, time), (f, h, w)) for n, size, time, f, h, w in rows}
    except (OSError, ValueError, KeyError, TypeError):
        return {}  # absent or damaged: the files are inspected, and copied, again


def add_file(files: dict[int, Path], image_id: int, path: Path) -> None:
    """Note whose file `path` is; raise when the id is too large or taken."""
    if image_id > LARGEST_ID:
        raise ValueError(f"{path}: an image id may be at most {LARGEST_ID}; rename the file")
    if image_id in files:
        raise ValueError(f"{path} and {files[image_id]} are the same image; keep one of them")
    files[image_id] = path


def inspect_files(
    inspect: Callable[[int], Found], image_ids: Iterable[int], num_threads: int
) -> dict[int, Found]:
    """{image_id: inspect(image_id)} by ascending id, with a progress bar.

    Threads wait together for a slow disk or network; where there is nothing to wait for, they only
    hinder each other, and one inspected at all.
    """
    ids = list(image_ids)
    seconds: list[float] = []

    def pair(image_id: int) -> tuple[int, Found]:
        start = time.perf_counter()
        found = inspect(image_id)
        seconds.append(time.perf_counter() - start)
        return image_id, found

    first = [pair(image_id) for image_id in ids[:FILES_AT_A_TIME]]
    useful = num_threads if min(seconds, default=0) > WORTH_WAITING else 1
    others = run_threads(pair, ids[FILES_AT_A_TIME:], useful, FILES_AT_A_TIME)
    bar = tqdm(chain(first, others), total=len(ids), desc="scan", unit="image")
    return dict(sorted(bar, key=lambda each: each[0]))
