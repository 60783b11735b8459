"""Writing an HDF5 file of large arrays part by part: complete or absent, resumable."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Self

import h5py
import numpy as np

from data.io.atomic_files import check_output_file, synchronise, write_all, write_errors_naming
from data.io.disk_space import require_room
from data.io.journal import Journal, describe_change


@dataclass(frozen=True)
class RowArray:
    """An array whose rows are written one after the other: its whole shape, and its dtype."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return int(np.prod(self.shape[1:], dtype=np.int64)) * self.dtype.itemsize

    @property
    def num_bytes(self) -> int:
        """Bytes of all rows."""
        return self.shape[0] * self.row_bytes


class ArrayFileWriter:
    """Write the rows of `arrays`, by their names in the file, in any order, then close.

    `known` are small arrays and lists of texts that are there from the start, `identity` the values
    of JSON that say what the file is about: its attributes. Leaving the block without error gives
    the finished file at `path`; otherwise what was committed stays beside it, and a writer of the
    same identity resumes from it. HDF5 lays the file out once; rows are written in place, so that
    whatever ends the process leaves a valid file.
    """

    def __init__(
        self,
        path: Path,
        arrays: Mapping[str, RowArray],
        known: Mapping[str, np.ndarray | list[str]],
        identity: Mapping[str, Any],
        force: bool = False,
    ) -> None:
        check_output_file(path, force)
        self.path, self.partial = path, path.with_name(path.name + ".partial")
        self.arrays, self.known = arrays, known
        self.identity = json.loads(json.dumps(identity))  # as the journal gives it back
        self.journal = Journal(path.with_name(path.name + ".journal"))
        try:
            self.offsets = self.resume() or self.begin()
            self.descriptor = os.open(self.partial, os.O_RDWR)
        except BaseException:
            self.journal.close(remove=not self.partial.exists())
            raise

    def resume(self) -> dict[str, int]:
        """Where the arrays begin in an unfinished file of the same contents; {} without one."""
        found, self.done = self.journal.read()
        if found is None or not self.partial.exists():
            return {}
        if found != self.identity:
            raise ValueError(
                f"{self.partial} was begun with {describe_change(found, self.identity)}; "
                f"finish that, or delete it and {self.journal.path}"
            )
        offsets = find_rows(self.partial, self.arrays)
        if offsets:
            self.require_room(written=512 * self.partial.stat().st_blocks)
        return offsets

    def begin(self) -> dict[str, int]:
        """Lay out a new file; where its arrays begin."""
        self.done = {}
        self.require_room()
        with write_errors_naming(self.partial):
            offsets = create_file(self.partial, self.arrays, self.known, self.identity)
            synchronise(self.partial)
            self.journal.start(self.identity)
        return offsets

    def require_room(self, written: int = 0) -> None:
        """Raise unless the disk has room for what is not written yet."""
        needed = sum(array.num_bytes for array in self.arrays.values()) - written
        require_room(self.path.parent, needed, str(self.path))

    def write(self, name: str, rows: np.ndarray, values: np.ndarray) -> None:
        """Write values (n, …) as the given rows (n,) of an array."""
        array = self.arrays[name]
        expected = (len(rows), *array.shape[1:])
        if values.shape != expected:
            raise ValueError(f"'{name}' got values of shape {values.shape}, expected {expected}")
        content = np.ascontiguousarray(values, array.dtype).reshape(len(rows), -1).view(np.uint8)
        with write_errors_naming(self.partial):
            for row, value in zip(rows.tolist(), content, strict=True):
                offset = self.offsets[name] + row * array.row_bytes
                write_all(self.descriptor, value.data, offset)

    def commit(self, number: int, checksum: int) -> None:
        """Record a part as done, once its rows are on disk: a power cut may not leave holes."""
        with write_errors_naming(self.partial):
            os.fdatasync(self.descriptor)
        with write_errors_naming(self.journal.path):
            self.journal.add([(number, checksum)])
        self.done[number] = checksum

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if error is None:
                with write_errors_naming(self.path):
                    os.fsync(self.descriptor)
                    os.replace(self.partial, self.path)
                    synchronise(self.path.parent)
        finally:
            os.close(self.descriptor)
            self.journal.close(remove=not self.partial.exists())


def create_file(
    path: Path,
    arrays: Mapping[str, RowArray],
    known: Mapping[str, np.ndarray | list[str]],
    attributes: Mapping[str, Any],
) -> dict[str, int]:
    """Make the file with all but the rows; where the rows of each array begin."""
    with h5py.File(path, "w", locking=False) as file:  # the journal guards the file
        for name, value in attributes.items():
            is_plain = isinstance(value, str | int | float)
            file.attrs[name] = value if is_plain else json.dumps(value, ensure_ascii=False)
        for name, content in known.items():
            is_text = isinstance(content, list)
            file.create_dataset(name, data=content, dtype=h5py.string_dtype() if is_text else None)
        offsets = {}
        for name, array in arrays.items():
            place = PurePosixPath(name)
            group = file.require_group(str(place.parent)) if place.parent.name else file
            offsets[name] = allocate_rows(group, place.name, array.shape, array.dtype)
        return offsets


def allocate_rows(group: Any, name: str, shape: tuple[int, ...], dtype: np.dtype) -> int:
    """Make an array in one contiguous piece, allocated now and not filled; where it begins.

    Its rows are then written in place, without HDF5.
    """
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_layout(h5py.h5d.CONTIGUOUS)
    creation.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    creation.set_obj_track_times(False)  # equal contents, equal bytes
    creation.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    space, kind = h5py.h5s.create_simple(shape), h5py.h5t.py_create(dtype)
    rows = h5py.h5d.create(group.id, name.encode(), kind, space, creation)
    return int(rows.get_offset())


def find_rows(path: Path, arrays: Mapping[str, RowArray]) -> dict[str, int]:
    """Where the rows of each array begin; {} where the file is damaged or laid out otherwise."""
    try:
        with h5py.File(path, "r", locking=False) as file:
            found = {name: file[name] for name in arrays}
            if all(
                (found[n].shape, found[n].dtype) == (a.shape, a.dtype) for n, a in arrays.items()
            ):
                return {name: int(array.id.get_offset()) for name, array in found.items()}
    except (OSError, KeyError, AttributeError):
        pass
    return {}
