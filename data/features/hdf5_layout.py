"""The HDF5 side of a feature store: laying out the file, and reading its index back, checked."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from data.features.dtype import DTYPES
from data.features.hdf5_heap import check_heaps
from data.features.header import SIZE, Header
from data.features.manifest import Manifest, check_grid, hash_index
from data.io.array_file import allocate_rows


@dataclasses.dataclass(frozen=True)
class StoreIndex:
    """Per image, all (n,) and by ascending id: id, first row, grid, checksum of its rows.

    A store of regions also has a matrix of boxes, a row per region, which begins at `boxes_offset`.
    """

    manifest: Manifest
    image_ids: np.ndarray
    offsets: np.ndarray
    heights: np.ndarray
    widths: np.ndarray
    checksums: np.ndarray
    boxes_offset: int | None = None


@dataclasses.dataclass(frozen=True)
class Matrix:
    """A 2-D array in one contiguous piece of the file, whose rows are written in place."""

    name: str
    shape: tuple[int, int]
    dtype: np.dtype

    @property
    def num_bytes(self) -> int:
        return self.shape[0] * self.shape[1] * self.dtype.itemsize


BOX_DTYPE = np.dtype("<f4")


def create_file(
    path: Path, index: Mapping[str, np.ndarray], matrices: Sequence[Matrix]
) -> list[int]:
    """Make the file with its index and space for the matrices; return where each begins."""
    with h5py.File(
        path,
        "w",
        locking=False,  # some network file systems have no locks; the journal guards the file
        userblock_size=SIZE,
        alignment_threshold=1 << 16,
        alignment_interval=SIZE,
    ) as file:
        for name, array in index.items():
            file[name] = array
        return [allocate_rows(file, matrix.name, matrix.shape, matrix.dtype) for matrix in matrices]


def renew_file(
    path: Path, index: Mapping[str, np.ndarray], matrices: Sequence[Matrix]
) -> list[int]:
    """Make all of an unfinished file but its matrices as `create_file` did; where these begin.

    A disk that was full when the file was to be finished may have left half of HDF5's own records.
    """
    fresh = path.with_name(path.name + ".layout")  # the room for its rows is never written
    try:
        offsets = create_file(fresh, index, matrices)
        with open(fresh, "rb") as source, open(path, "r+b") as target:
            for start, matrix in sorted(zip(offsets, matrices, strict=True), key=lambda at: at[0]):
                target.write(source.read(start - source.tell()))
                for file in (source, target):
                    file.seek(start + matrix.num_bytes)
            target.write(source.read())
            target.truncate()
        return offsets
    finally:
        fresh.unlink(missing_ok=True)


def read_index(descriptor: int, header: Header, path: object) -> StoreIndex:
    """Read the index of an open store and raise when it is not valid."""
    check_heaps(descriptor, header, path)
    try:
        # through the descriptor, not the name: a file renamed meanwhile cannot be mixed in
        with (
            os.fdopen(os.dup(descriptor), "rb") as stream,
            h5py.File(stream, "r") as file,
        ):
            manifest = Manifest.parse(read_text(file, "manifest"), path)
            check_rows(file, header, manifest.dtype, path)
            index = StoreIndex(
                manifest,
                read_array(file, "image_id", np.int64),
                read_array(file, "offset", np.int64),
                read_array(file, "height", np.int32),
                read_array(file, "width", np.int32),
                read_array(file, "checksum", np.uint32),
                None if manifest.is_grid else find_boxes(file, manifest.num_cells),
            )
            shape = file["features"].shape
    except KeyError as error:
        raise ValueError(f"{path} lacks a part of a feature store: {error}") from None
    except Exception as error:  # h5py raises whatever damaged metadata lead to
        if str(error).startswith(str(path)):
            raise
        raise ValueError(f"{path} cannot be read as HDF5: {error}") from None
    check_index(index, shape, path)
    return index


def read_text(file: Any, name: str) -> str:
    """Read one attribute, a text; of a damaged one of another type HDF5 may crash."""
    attribute = file.attrs.get_id(name)
    if attribute.shape != () or not isinstance(attribute.get_type(), h5py.h5t.TypeStringID):
        raise TypeError(f"'{name}' should be one text")
    return str(file.attrs[name])


def read_array(file: Any, name: str, kind: type) -> np.ndarray:
    """Read one 1-D array of the index."""
    found = file[name]
    if not isinstance(found, h5py.Dataset) or found.ndim != 1 or found.dtype != kind:
        raise TypeError(f"'{name}' should be one row of {np.dtype(kind)}")
    array: np.ndarray = found[...]
    return array


def find_boxes(file: Any, num_cells: int) -> int:
    """Where the boxes of a store of regions begin, a row (x1, y1, x2, y2) per region."""
    boxes = file["boxes"]
    if (
        not isinstance(boxes, h5py.Dataset)
        or (boxes.shape, boxes.dtype) != ((num_cells, 4), BOX_DTYPE)
        or boxes.id.get_offset() is None
    ):
        raise TypeError(f"'boxes' should be {num_cells} rows of four {BOX_DTYPE}, contiguous")
    return int(boxes.id.get_offset())


def check_rows(file: Any, header: Header, dtype: str, path: object) -> None:
    """Raise unless the features are one contiguous matrix of the dtype where the header says."""
    rows, expected = file["features"], DTYPES[dtype].array_dtype
    if not isinstance(rows, h5py.Dataset) or rows.ndim != 2 or rows.dtype != expected:
        kind = getattr(rows, "dtype", type(rows).__name__)
        raise ValueError(f"{path}: 'features' is {kind}, expected a 2-D array of {expected}")
    if rows.chunks is not None or rows.external is not None or rows.is_virtual:
        raise ValueError(f"{path}: 'features' is not stored in one contiguous piece")
    if rows.id.get_offset() != header.data_offset or rows.nbytes != header.data_bytes:
        raise ValueError(f"{path}: 'features' is not where the header says; make the store again")


def check_index(index: StoreIndex, shape: tuple[int, int], path: object) -> None:
    """Raise when ids, grids, offsets, manifest and the number of rows do not agree."""
    manifest = index.manifest
    counts = (manifest.num_images, manifest.num_cells, manifest.num_features)
    if (len(index.image_ids), *shape) != counts:
        raise ValueError(
            f"{path}: the manifest says (images, {manifest.unit}s, features) = {counts}, "
            f"the file holds {(len(index.image_ids), *shape)}"
        )
    arrays = index.image_ids, index.offsets, index.heights, index.widths, index.checksums
    if len({len(array) for array in arrays}) != 1:
        raise ValueError(f"{path}: the arrays of the index differ in length")
    steps = np.diff(index.image_ids)
    if (steps <= 0).any():
        image_id = index.image_ids[1:][steps <= 0][0]
        raise ValueError(f"{path}: image {image_id} is there twice or out of order")
    try:
        grids = np.stack([index.heights, index.widths], axis=1)
        _, first = np.unique(grids, axis=0, return_index=True)  # each shape once: cheap
        for n in first.tolist():
            height, width = grids[n].tolist()
            check_grid(int(index.image_ids[n]), height, width, manifest.resize, manifest.stride)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    cells = index.heights.astype(np.int64) * index.widths
    ends = np.cumsum(cells)
    wrong = index.offsets != ends - cells
    if wrong.any() or ends[-1] != manifest.num_cells:
        image_id = index.image_ids[wrong][0] if wrong.any() else index.image_ids[-1]
        raise ValueError(f"{path}: the rows of image {image_id} lie outside or over others")
    found = hash_index(index.image_ids, index.heights, index.widths, index.checksums)
    if found != manifest.checksum:
        raise ValueError(f"{path}: the index does not match the manifest's checksum")
