"""Writing a feature store: complete or absent, in any order, from many threads, resumable."""

import os
import threading
import zlib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Self

import h5py
import numpy as np
import torch

from data.features.dtype import DEFAULT, DTYPES
from data.features.hdf5_layout import BOX_DTYPE, Matrix, create_file, renew_file
from data.features.header import write_header
from data.features.manifest import (
    DEFAULTS_OF_OLDER_STORES,
    GRID,
    STRIDE,
    Manifest,
    check_grid,
    check_resize,
    check_text,
    hash_index,
)
from data.io.atomic_files import check_output_file, synchronise, write_all, write_errors_naming
from data.io.disk_space import require_room
from data.io.journal import Journal, describe_change

COMMIT_BYTES = 64 << 20  # rows written between two entries in the journal


class StoreWriter:
    """Write the rows of every image in `sizes`, {image_id: (height, width)}, then close.

    With `cells="regions"` an image has n×1 rows, a region each, and as many boxes.

    Leaving the block without error gives the finished file at `path`; otherwise nothing is there.
    With `resume`, what was written stays beside `path` and the same call resumes from it.
    """

    def __init__(
        self,
        path: str | Path,
        sizes: Mapping[int, tuple[int, int]],
        num_features: int,
        *,
        source: str,
        backbone: str,
        resize: Sequence[int] | None = None,
        stride: int = STRIDE,
        dtype: str = DEFAULT.name,
        cells: str = GRID,
        force: bool = False,
        resume: bool = False,
        commit_bytes: int = COMMIT_BYTES,
    ) -> None:
        self.path = Path(path)
        self.partial = self.path.with_name(self.path.name + ".partial")
        self.resume, self.commit_bytes = resume, commit_bytes
        self.num_features, self.dtype = num_features, DTYPES[dtype]
        self.resize = check_resize(resize)
        self.origin: dict[str, Any] = {  # fields of the manifest
            "source": check_text("source", source),
            "backbone": check_text("backbone", backbone),
            "num_features": num_features,
            "dtype": dtype,
            "stride": stride,
            "cells": cells,
        }
        check_output_file(self.path, force)
        self.image_ids, self.heights, self.widths = self.sort_sizes(sizes, stride)
        counts = self.heights.astype(np.int64) * self.widths
        self.offsets = np.concatenate([[0], np.cumsum(counts)[:-1]])
        self.num_cells = int(counts.sum())
        self.matrices = [Matrix("features", (self.num_cells, num_features), self.dtype.array_dtype)]
        if cells != GRID:
            self.matrices.append(Matrix("boxes", (self.num_cells, 4), BOX_DTYPE))
        self.data_bytes = self.matrices[0].num_bytes
        self.number = {image_id: n for n, image_id in enumerate(self.image_ids.tolist())}
        self.pending: list[tuple[int, int]] = []  # written, not yet known to be on disk
        self.pending_bytes = 0
        self.lock = threading.Lock()
        self.open()
        # the disk is waited for in a thread of its own, at most once at a time
        self.committer = ThreadPoolExecutor(1, "commit")
        self.committing: Future[None] = self.committer.submit(lambda: None)

    def sort_sizes(
        self, sizes: Mapping[int, tuple[int, int]], stride: int
    ) -> tuple[np.ndarray, ...]:
        """Image ids (n,), heights and widths by ascending id, after checking every grid."""
        if not sizes:
            raise ValueError(f"{self.path}: there are no images to store")
        if self.num_features < 1:
            raise ValueError(f"{self.path}: a cell needs at least one feature")
        for image_id, (height, width) in sizes.items():
            check_grid(image_id, height, width, self.resize, stride)
        image_ids = np.array(sorted(sizes), dtype=np.int64)
        grids = np.array([sizes[image_id] for image_id in image_ids.tolist()], dtype=np.int32)
        return image_ids, grids[:, 0], grids[:, 1]

    def open(self) -> None:
        """Continue an unfinished file of the same contents, or begin a new one."""
        self.journal = Journal(self.path.with_name(self.path.name + ".journal"))
        identity = self.identity()
        try:
            found, self.done = self.journal.read()
            # not said by older versions, which knew no others
            found = {"dtype": DEFAULT.name, **DEFAULTS_OF_OLDER_STORES, **found} if found else {}
            offset = found.pop("data_offset", 0)
            num_bytes = self.partial.stat().st_size if self.partial.exists() else 0
            if self.resume and found and found != identity and num_bytes:
                raise ValueError(
                    f"{self.partial} was begun with {describe_change(found, identity)}; "
                    f"finish that, or delete it and {self.journal.path}"
                )
            needed = sum(matrix.num_bytes for matrix in self.matrices)
            is_whole = num_bytes >= offset + needed
            begun = self.resume and found == identity and is_whole
            with write_errors_naming(self.partial):
                self.starts = renew_file(*self.layout()) if begun else [-1]
                if self.starts[0] != offset:
                    self.done = {}
                    require_room(self.path.parent, needed, f"{self.path}")
                    self.starts = create_file(*self.layout())
                    synchronise(self.partial)
                    self.journal.start({**identity, "data_offset": self.starts[0]})
            self.data_offset = self.starts[0]
            self.descriptor = os.open(self.partial, os.O_RDWR)
        except BaseException:
            self.journal.close(remove=not self.partial.exists())
            raise

    def identity(self) -> dict[str, Any]:
        """What makes two unfinished files the same file."""
        grids = hash_index(self.image_ids, self.heights, self.widths, np.zeros(0))
        resize = None if self.resize is None else list(self.resize)
        return {**self.origin, "resize": resize, "grids": grids}

    def layout(self) -> tuple[Path, dict[str, np.ndarray], Sequence[Matrix]]:
        """What the unfinished file is made of; checksums are filled in at the end."""
        index = {
            "image_id": self.image_ids,
            "offset": self.offsets,
            "height": self.heights,
            "width": self.widths,
            "checksum": np.zeros(len(self.image_ids), dtype=np.uint32),
        }
        return self.partial, index, self.matrices

    def write(
        self, image_id: int, rows: np.ndarray | torch.Tensor, boxes: np.ndarray | None = None
    ) -> None:
        """Store an image's rows (L, F), row-major over its grid; they must be finite.

        `boxes` (L, 4) are those of regions: x1, y1, x2, y2 from 0 to 1, or NaN where not known.
        """
        number = self.number.get(image_id)
        if number is None:
            raise ValueError(f"image {image_id} is not one of the images this store was made for")
        length = int(self.heights[number]) * int(self.widths[number])
        if tuple(rows.shape) != (length, self.num_features):
            raise ValueError(
                f"image {image_id} has rows of shape {tuple(rows.shape)}, "
                f"expected {(length, self.num_features)}"
            )
        content = self.dtype.encode(image_id, rows).reshape(-1).view(np.uint8).data
        pieces = [content]
        if len(self.matrices) > 1:
            pieces.append(encode_boxes(image_id, boxes, length))
        with write_errors_naming(self.partial):
            for start, matrix, piece in zip(self.starts, self.matrices, pieces, strict=True):
                row_bytes = matrix.shape[1] * matrix.dtype.itemsize
                write_all(self.descriptor, piece, start + int(self.offsets[number]) * row_bytes)
        self.record(image_id, zlib.crc32(content), len(content))

    def record(self, image_id: int, checksum: int, num_bytes: int) -> None:
        """Count an image as done; now and then make sure the disk has it and write that down."""
        with self.lock:
            self.pending.append((image_id, checksum))
            self.pending_bytes += num_bytes
            if self.pending_bytes < self.commit_bytes:
                return
            entries, self.pending, self.pending_bytes = self.pending, [], 0
            before, self.committing = self.committing, self.committer.submit(self.commit, entries)
        before.result()  # raises when the disk did not take it

    def commit(self, entries: list[tuple[int, int]]) -> None:
        """Journal images only after their rows are on disk: a power cut may not leave holes."""
        with write_errors_naming(self.partial):
            os.fdatasync(self.descriptor)
        with self.lock, write_errors_naming(self.journal.path):
            self.journal.add(entries)
            self.done.update(entries)

    def forget(self, image_ids: Iterable[int]) -> None:
        """Count images as not written, in the journal too: they are to be written again."""
        kept = self.done.keys() - set(image_ids)
        if len(kept) == len(self.done):
            return
        self.done = {n: checksum for n, checksum in self.done.items() if n in kept}
        self.journal.start({**self.identity(), "data_offset": self.data_offset})
        self.journal.add(list(self.done.items()))

    def finish(self) -> None:
        """Complete the index and give the file its name."""
        self.committing.result()
        self.commit(self.pending)
        missing = [n for n in self.image_ids.tolist() if n not in self.done]
        if missing:
            raise ValueError(
                f"{self.path}: {len(missing)} images were not written, as {missing[0]}"
            )
        checksums = np.array([self.done[n] for n in self.image_ids.tolist()], dtype=np.uint32)
        manifest = Manifest(
            **self.origin,
            resize=self.resize,
            num_images=len(self.image_ids),
            num_cells=self.num_cells,
            checksum=hash_index(self.image_ids, self.heights, self.widths, checksums),
        )
        with write_errors_naming(self.path):
            with h5py.File(self.partial, "r+", locking=False) as file:
                file["checksum"][...] = checksums
                file.attrs["manifest"] = manifest.dump()
            write_header(self.descriptor, self.data_offset, self.data_bytes)
            os.fsync(self.descriptor)
            os.replace(self.partial, self.path)
            synchronise(self.path.parent)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        finished = False
        try:
            if error is None:
                self.finish()
                finished = True
            elif self.resume:
                wait([self.committing])
                self.commit(self.pending)
        finally:
            self.committer.shutdown()
            os.close(self.descriptor)
            if not finished and not self.resume:
                self.partial.unlink(missing_ok=True)
            self.journal.close(remove=finished or not self.resume)


def encode_boxes(image_id: int, boxes: np.ndarray | None, length: int) -> memoryview:
    """The bytes of an image's boxes; raise where there is not one for each of its regions."""
    if boxes is None or boxes.shape != (length, 4):
        found = "no boxes" if boxes is None else f"boxes of shape {boxes.shape}"
        raise ValueError(f"image {image_id} has {found}, expected {(length, 4)}")
    return np.ascontiguousarray(boxes, BOX_DTYPE).reshape(-1).view(np.uint8).data
