"""Filling a store from a folder of files: goes on where a killed run stopped."""

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TypeVar

from tqdm import tqdm

from data.destination import refuse_existing
from data.entries import LARGEST_ID
from data.scan import Scan, forget_changed, recall_scan, save_scan
from data.store_writer import COMMIT_BYTES, StoreWriter
from data.threads import FILES_AT_A_TIME, run_threads

Seen = TypeVar("Seen")
WORTH_WAITING = 0.002  # seconds a file: a glance at one in memory takes a fraction of a millisecond
Fill = Callable[[StoreWriter, list[int]], Iterable[object]]


class StoreFiller:
    """One store to be made from the files of one folder; `details` say what else it depends on."""

    def __init__(
        self,
        output: Path,
        folder: Path,
        *,
        backbone: str,
        resize: Sequence[int] | None = None,
        details: str = "",
        force: bool = False,
        commit_bytes: int = COMMIT_BYTES,
    ) -> None:
        refuse_existing(output, force)
        self.output, self.origin, self.details = output, str(folder.resolve()), details
        self.backbone, self.resize = backbone, resize
        self.force, self.commit_bytes = force, commit_bytes
        self.record = output.with_name(output.name + ".scan")

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
            force=self.force,
            resume=True,
            commit_bytes=self.commit_bytes,
        ) as writer:
            forget_changed(writer, before, scan)
            save_scan(self.record, self.origin, scan)
            missing = [image_id for image_id in scan if image_id not in writer.done]
            done = len(scan) - len(missing)
            with tqdm(total=len(scan), initial=done, desc=title, unit="image") as bar:
                for _ in fill(writer, missing):
                    bar.update()
        self.record.unlink()
        return len(missing)


def add_file(files: dict[int, Path], image_id: int, path: Path) -> None:
    """Note whose file `path` is; raise when the id is too large or taken."""
    if image_id > LARGEST_ID:
        raise ValueError(f"{path}: an image id may be at most {LARGEST_ID}; rename the file")
    if image_id in files:
        raise ValueError(f"{path} and {files[image_id]} are the same image; keep one of them")
    files[image_id] = path


def look_at_files(
    look: Callable[[int], Seen], image_ids: Iterable[int], num_threads: int
) -> dict[int, Seen]:
    """{image_id: look(image_id)} by ascending id, with a progress bar.

    Threads wait together for a slow disk or network; where there is nothing to wait for, they only
    hinder each other, and one looks at all.
    """
    ids = list(image_ids)
    seconds: list[float] = []

    def pair(image_id: int) -> tuple[int, Seen]:
        start = time.perf_counter()
        seen = look(image_id)
        seconds.append(time.perf_counter() - start)
        return image_id, seen

    first = [pair(image_id) for image_id in ids[:FILES_AT_A_TIME]]
    useful = num_threads if min(seconds, default=0) > WORTH_WAITING else 1
    others = run_threads(pair, ids[FILES_AT_A_TIME:], useful, FILES_AT_A_TIME)
    bar = tqdm(chain(first, others), total=len(ids), desc="scan", unit="image")
    return dict(sorted(bar, key=lambda each: each[0]))
