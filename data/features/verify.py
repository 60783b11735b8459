"""Checking a feature store from end to end: every row, and every image that questions ask for."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tqdm import tqdm

from data.features.manifest import Manifest
from data.features.reader import FeatureStore
from data.io.threads import choose_threads, run_threads
from data.vqa.json_entries import name_ids
from data.vqa.questions import load_questions


@dataclass(frozen=True)
class Report:
    """What a valid store holds."""

    manifest: Manifest
    num_bytes: int
    shapes: dict[tuple[int, int], int]  # {grid: images}, most frequent first
    num_questions: int


def verify_store(
    path: str | Path,
    questions: Sequence[str | Path] = (),
    backbone: str | None = None,
    resize: Sequence[int] | None = None,
) -> Report:
    """Check manifest, counts and bounds, then every row, then that no question lacks its image."""
    with FeatureStore(path) as store:
        store.manifest.require(path, backbone, resize)
        num_questions = check_images(store, questions)
        check_rows(store)
        grids, counts = np.unique(
            np.stack([store.heights, store.widths], axis=1), axis=0, return_counts=True
        )
        shapes = {
            (int(grids[n, 0]), int(grids[n, 1])): int(counts[n])
            for n in np.argsort(-counts, kind="stable")
        }
        return Report(store.manifest, store.header.file_bytes, shapes, num_questions)


def check_images(store: FeatureStore, paths: Sequence[str | Path]) -> int:
    """Raise when a question's image is not in the store; give the number of questions."""
    if not paths:
        return 0
    questions = load_questions(paths)
    missing = np.unique(questions.image_ids[store.positions(questions.image_ids) < 0])
    if len(missing):
        raise ValueError(
            f"{store.path} lacks {len(missing)} images of the questions in "
            f"{', '.join(map(str, paths))}: {name_ids(missing.tolist())}"
        )
    return len(questions)


def check_rows(store: FeatureStore) -> None:
    """Read all rows; raise when some are not finite or not what was written, naming the images."""

    problems: dict[str, dict[int, str]] = {
        "hold NaN or infinite features": {},
        "do not match their checksum": {},
    }
    infinite, changed = problems.values()

    def check(place: int) -> None:
        rows, image_id = store.view(place), store.image_ids[place]
        if not store.dtype.is_finite(rows):
            infinite[place] = f"{image_id} (row {store.dtype.find_bad_row(rows)})"
        elif zlib.crc32(rows.data) != store.checksums[place]:
            changed[place] = str(image_id)

    checked = run_threads(check, range(len(store)), choose_threads(0))
    for _ in tqdm(checked, total=len(store), desc=f"verify {store.path.name}", unit="image"):
        pass
    for what, images in problems.items():
        if images:
            named = name_ids(images[place] for place in sorted(images))
            raise ValueError(
                f"{store.path}: {len(images)} images {what}: {named}; copy or make the store again"
            )
