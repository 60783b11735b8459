"""Filling a store from a folder of files, resumed where a killed run stopped."""

import time
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from tqdm import tqdm

from data.features.writer import StoreWriter
from data.io.atomic_files import read_json, write_json
from data.io.threads import FILES_AT_A_TIME, run_threads
from data.vqa.json_entries import LARGEST_ID

State = tuple[int, int]  # size in bytes and time of the last change
Shape = tuple[int, int, int]  # (F, h, w)
Scan = Mapping[int, tuple[State, Shape]]  # by image id
Fill = Callable[[StoreWriter, list[int]], Iterable[object]]
WORTH_WAITING = 0.002  # seconds per file; one in memory takes a fraction of a millisecond


def list_files(
    folder: Path, read_id: Callable[[Path], int | None], expected: str
) -> dict[int, Path]:
    """{image_id: file} by ascending id; `read_id` raises on a wrong name, None skips a file."""
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder; expected one of {expected}")
    files: dict[int, Path] = {}
    for path in sorted(folder.iterdir()):
        image_id = read_id(path)
        if image_id is None:
            continue
        if image_id > LARGEST_ID:
            raise ValueError(f"{path}: an image id may be at most {LARGEST_ID}; rename the file")
        if image_id in files:
            raise ValueError(f"{path} and {files[image_id]} are the same image; keep one of them")
        files[image_id] = path
    if not files:
        raise ValueError(f"{folder} holds no {expected}")
    return dict(sorted(files.items()))


def inspect_files(
    files: Mapping[int, Path], measure: Callable[[int], Shape], num_threads: int, known: Scan
) -> Scan:
    """State and shape of every file, with a progress bar; `known` ones are not measured again.

    Threads wait together for a slow disk or network; where there is nothing to wait for, they only
    slow each other down, and one inspects all.
    """
    ids = list(files)
    seconds: list[float] = []

    def inspect(image_id: int) -> tuple[int, tuple[State, Shape]]:
        start = time.perf_counter()
        state = read_state(files[image_id])
        found = known.get(image_id)
        if found is None or found[0] != state:
            found = state, measure(image_id)
        seconds.append(time.perf_counter() - start)
        return image_id, found

    first = [inspect(image_id) for image_id in ids[:FILES_AT_A_TIME]]
    useful = num_threads if min(seconds) > WORTH_WAITING else 1
    others = run_threads(inspect, ids[FILES_AT_A_TIME:], useful, FILES_AT_A_TIME)
    bar = tqdm(chain(first, others), total=len(ids), desc="scan", unit="image")
    return dict(sorted(bar))


def read_state(path: Path) -> State:
    """Size and time of change, by which a changed file is detected."""
    try:
        status = path.stat()
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} has gone; start again with all files there") from None
    return status.st_size, status.st_mtime_ns


def check_features(files: Mapping[int, Path], scan: Scan, unit: str) -> None:
    """Raise when images differ in their number of features per cell or region."""
    first = next(iter(files))
    expected = scan[first][1][0]
    for image_id, (_, (features, _, _)) in scan.items():
        if features != expected:
            raise ValueError(
                f"{files[image_id]} has {features} features per {unit}, but {files[first]} "
                f"has {expected}; all must have the same"
            )


def fill_store(
    output: Path,
    folder: Path,
    scan: Scan,
    fill: Fill,
    title: str,
    details: str = "",
    **options: Any,
) -> int:
    """Have every image of `scan` written that is not yet; the number of them.

    `fill(writer, image_ids)` writes these images in any order, and yields once for each. `details`
    say what the features depend on beside the files; `options` are those of StoreWriter.
    """
    record = record_file(output)
    before = recall_scan(record, folder)
    with StoreWriter(
        output,
        {image_id: (height, width) for image_id, (_, (_, height, width)) in scan.items()},
        next(iter(scan.values()))[1][0],
        source=f"{folder.resolve()} ({len(scan)} files){details}",
        resume=True,
        **options,
    ) as writer:
        # before the new record: a file that changed since it was written is written again
        writer.forget([n for n in writer.done if before.get(n) != scan[n]])
        save_scan(record, folder, scan)
        missing = [image_id for image_id in scan if image_id not in writer.done]
        done = len(scan) - len(missing)
        with tqdm(total=len(scan), initial=done, desc=title, unit="image") as bar:
            for _ in fill(writer, missing):
                bar.update()
    record.unlink()
    return len(missing)


def record_file(output: Path) -> Path:
    """Where it is written down, while a store is made, what its source files are like."""
    return output.with_name(output.name + ".scan")


def save_scan(record: Path, folder: Path, scan: Scan) -> None:
    """Write down what the files of a folder are like, one row of six numbers each."""
    rows = [[n, *state, *shape] for n, (state, shape) in scan.items()]
    write_json(record, {"source": str(folder.resolve()), "files": rows})


def recall_scan(record: Path, folder: Path) -> Scan:
    """What an interrupted run wrote down about a folder; empty when there is none."""
    try:
        found = read_json(record)
        rows = found["files"] if found["source"] == str(folder.resolve()) else []
        return {n: ((size, time), (f, h, w)) for n, size, time, f, h, w in rows}
    except (OSError, ValueError, KeyError, TypeError):
        return {}  # absent or damaged: the files are inspected, and copied, again
