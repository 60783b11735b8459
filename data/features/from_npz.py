"""From a folder of bottom-up `.npz` files, regions with their boxes, to one feature store."""

import contextlib
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import numpy as np

from data.features.dtype import DEFAULT
from data.features.manifest import REGIONS, check_text
from data.features.resumable_build import (
    Shape,
    check_features,
    fill_store,
    inspect_files,
    list_files,
    recall_scan,
    record_file,
)
from data.features.writer import COMMIT_BYTES, StoreWriter
from data.io.atomic_files import check_output_file
from data.io.image_names import IMAGE_NAME
from data.io.threads import FILES_AT_A_TIME, choose_threads, run_threads

BOTTOM_UP = "bottom-up-attention"  # what published MCANs were trained on
MOST_REGIONS = 100  # per image: what published MCANs pad to
OUTSIDE = 1.0  # pixels that a box may reach beyond the image: some count pixels from 0, some from 1
# what reading a damaged, encrypted or foreign archive raises
DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, MemoryError),
    UnicodeError,  # a member's name
)


def convert_regions(
    source: str | Path,
    output: str | Path,
    backbone: str = BOTTOM_UP,
    dtype: str = DEFAULT.name,
    force: bool = False,
    num_threads: int = 0,
    commit_bytes: int = COMMIT_BYTES,
) -> int:
    """Convert every `.npz` of a folder; give the number of images that had to be copied.

    Killed at any moment, the same call adds what is missing, as `convert_folder` does.
    """
    source, output, num_threads = Path(source), Path(output), choose_threads(num_threads)
    check_output_file(output, force)
    files = list_files(source, read_id, "COCO_<split>_<image_id>.jpg.npz files")

    def measure(image_id: int) -> Shape:
        return measure_regions(files[image_id])

    scan = inspect_files(files, measure, num_threads, recall_scan(record_file(output), source))
    check_features(files, scan, "region")
    return fill_store(
        output,
        source,
        scan,
        lambda writer, image_ids: copy_files(files, image_ids, writer, num_threads),
        "copy",
        backbone=check_text("backbone", backbone),
        dtype=dtype,
        cells=REGIONS,
        force=force,
        commit_bytes=commit_bytes,
    )


def holds_regions(folder: str | Path) -> bool:
    """Whether a folder holds `.npz` files."""
    return any(Path(folder).glob("*.npz"))


def read_id(path: Path) -> int | None:
    """The image id in the name of a file; hidden files have none, any other file must."""
    if path.name.startswith("."):
        return None
    name = IMAGE_NAME.fullmatch(path.name.removesuffix(".npz").removesuffix(".jpg"))
    if path.suffix != ".npz" or name is None:
        raise ValueError(
            f"{path} is not named COCO_<split>_<image_id>.jpg.npz or <image_id>.npz; move it out "
            "of the folder"
        )
    return int(name[1])


def copy_files(
    files: dict[int, Path], image_ids: list[int], writer: StoreWriter, num_threads: int
) -> Iterable[None]:
    """Store the regions of these images' files, in threads."""

    def copy(image_id: int) -> None:
        path = files[image_id]
        features, boxes = read_regions(path)
        try:
            writer.write(image_id, features, boxes)
        except ValueError as error:
            raise ValueError(f"{path}: {error}; repair the file and run this again") from None

    return run_threads(copy, image_ids, num_threads, FILES_AT_A_TIME)


def measure_regions(path: Path) -> Shape:
    """(F, n, 1): how many features and regions a file has; the features are not read."""
    with open_archive(path) as archive:
        num_regions = len(read_boxes(archive, path))
        with open_member(archive, "x", path) as member:
            version = np.lib.format.read_magic(member)
            read = np.lib.format.read_array_header_1_0
            if version != (1, 0):
                read = np.lib.format.read_array_header_2_0
            shape, _, dtype = read(member)
    check_features_array(shape, dtype, num_regions, path)
    return (shape[0] if shape[1] == num_regions else shape[1]), num_regions, 1


def read_regions(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The features (n, F) of a file and the boxes (n, 4), NaN where it names no image size."""
    with open_archive(path) as archive:
        boxes = read_boxes(archive, path)
        features = read_array(archive, "x", path)
    check_features_array(features.shape, features.dtype, len(boxes), path)
    # (F, n) as published, or (n, F) as elsewhere: the side that is not the boxes' is the features'
    rows = features.T if features.shape[1] == len(boxes) else features
    if not rows.any(axis=1).all():
        raise ValueError(
            f"{path}: region {rows.any(axis=1).argmin()} has zeros alone, which published MCANs "
            "take for padding; leave it out"
        )
    return rows, boxes


def check_features_array(
    shape: tuple[int, ...], dtype: np.dtype, num_regions: int, path: Path
) -> None:
    """Raise unless `x` has features for every box, in either orientation."""
    if dtype.kind != "f" or len(shape) != 2 or num_regions not in shape or 0 in shape:
        raise ValueError(
            f"{path}: 'x' is {dtype} of shape {shape}, expected floats (features, {num_regions}) "
            f"or ({num_regions}, features), as there are {num_regions} boxes"
        )


def read_boxes(archive: zipfile.ZipFile, path: Path) -> np.ndarray:
    """(n, 4) float64: x1, y1, x2, y2 from 0 to 1; NaN where the file does not tell the size."""
    boxes = read_array(archive, "bbox", path)
    if boxes.ndim != 2 or boxes.shape[1] != 4 or boxes.dtype.kind not in "fiu":
        raise ValueError(f"{path}: 'bbox' is {boxes.dtype} of shape {boxes.shape}, expected (n, 4)")
    if not 1 <= len(boxes) <= MOST_REGIONS:
        raise ValueError(f"{path} has {len(boxes)} regions, expected 1 to {MOST_REGIONS}")
    count = read_number(archive, "num_bbox", path)
    if count is not None and count != len(boxes):
        raise ValueError(f"{path} says num_bbox={count:g}, but has {len(boxes)} boxes")
    boxes = boxes.astype(np.float64)
    width, height = (read_number(archive, name, path) for name in ("image_w", "image_h"))
    limits = np.array([np.inf if side is None else side for side in (width, height)] * 2)
    is_inside = (boxes >= -OUTSIDE) & (boxes <= limits + OUTSIDE)  # False for NaN
    if not is_inside.all() or (boxes[:, 2:] < boxes[:, :2]).any() or not np.isfinite(boxes).all():
        size = "" if np.isinf(limits).any() else f" of {width:g}×{height:g} pixels"
        raise ValueError(
            f"{path}: a box is not x1, y1, x2, y2 in pixels within the image{size}; "
            "make these features again"
        )
    if np.isinf(limits).any():
        return np.full_like(boxes, np.nan)
    return np.clip(boxes / limits, 0, 1)


def read_number(archive: zipfile.ZipFile, name: str, path: Path) -> float | None:
    """A positive number of a file; None where it is not there."""
    if f"{name}.npy" not in archive.namelist():
        return None
    array = read_array(archive, name, path)
    if array.size != 1 or array.dtype.kind not in "fiu" or not 0 < float(array.ravel()[0]) < np.inf:
        raise ValueError(f"{path}: '{name}' is not a positive number")
    return float(array.ravel()[0])


def read_array(archive: zipfile.ZipFile, name: str, path: Path) -> np.ndarray:
    """An array of an archive; one of Python objects is not read: that could run code."""
    with open_member(archive, name, path) as member:
        array: np.ndarray = np.lib.format.read_array(member, allow_pickle=False)
        return array


@contextlib.contextmanager
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """An open `.npz`."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} has gone; start again with all files there") from None
    except DAMAGED as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise  # it names the file itself, as one that may not be read
        raise ValueError(f"{path} is damaged or not a .npz file ({error})") from None


@contextlib.contextmanager
def open_member(archive: zipfile.ZipFile, name: str, path: Path) -> Iterator[IO[bytes]]:
    """An open array of an archive."""
    if f"{name}.npy" not in archive.namelist():
        raise ValueError(f"{path} has no '{name}'; a file of regions has x and bbox")
    try:
        with archive.open(f"{name}.npy") as member:
            yield member
    except ValueError as error:  # numpy's, which name no file
        raise ValueError(f"{path}: '{name}' cannot be read ({error})") from None
