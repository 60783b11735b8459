"""Filling a store from a folder of files: goes on where a killed run stopped."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from tqdm import tqdm

from data.destination import refuse_existing
from data.entries import LARGEST_ID
from data.scan import Scan, forget_changed, recall_scan, save_scan
from data.store_writer import COMMIT_BYTES, StoreWriter
from data.threads import FILES_AT_A_TIME, run_threads

Seen = TypeVar("Seen")
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
    """{image_id: look(image_id)} by ascending id, with a progress bar."""
    ids = list(image_ids)

    def pair(image_id: int) -> tuple[int, Seen]:
        return image_id, look(image_id)

    looked = run_threads(pair, ids, num_threads, FILES_AT_A_TIME)
    bar = tqdm(looked, total=len(ids), desc="scan", unit="image")
    return dict(sorted(bar, key=lambda each: each[0]))
