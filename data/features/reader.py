"""Reading a feature store: the rows of an image, straight from a memory map of the file."""

import mmap
import os
import warnings
from pathlib import Path
from shlex import quote
from typing import Self

import numpy as np

from data.features.dtype import DTYPES
from data.features.hdf5_layout import BOX_DTYPE, read_index
from data.features.header import read_header

READERS = ("mmap", "pread")


class FeatureStore:
    """One file of features: image_ids (n,) ascending, heights, widths, and rows.

    `reader="mmap"` gives views of the page cache; `"pread"` copies, for NFS and Lustre, where a map
    is slow, and for files that may be cut at any moment: it reads nothing through the map. The file
    is opened once and never parsed again, so threads and forks may share it.
    """

    def __init__(self, path: str | Path, reader: str = "mmap") -> None:
        if reader not in READERS:
            raise ValueError(f"reader is {reader!r}, expected one of {', '.join(READERS)}")
        self.path, self.reader = Path(path), reader
        self.warned = False
        if self.path.is_dir():
            raise IsADirectoryError(f"{self.path} is a folder; name the store in it, a file *.h5")
        if not self.path.is_file():
            raise FileNotFoundError(
                f"{self.path} does not exist; make it from images with `make extract IMAGES=folder "
                f"OUT={quote(str(self.path))} BACKBONE=name`, from .pth or .npz files with "
                "`make features SOURCE=folder OUT=…`"
            )
        self.descriptor = os.open(self.path, os.O_RDONLY)
        try:
            self.identity = read_identity(os.fstat(self.descriptor))
            header = read_header(self.descriptor, self.path)
            index = read_index(self.descriptor, header, self.path)
            self.header, self.manifest = header, index.manifest
            self.image_ids, self.offsets = index.image_ids, index.offsets
            self.heights, self.widths = index.heights, index.widths
            self.checksums = index.checksums
            self.map = mmap.mmap(self.descriptor, header.file_bytes, access=mmap.ACCESS_READ)
        except BaseException:
            os.close(self.descriptor)
            raise
        self.num_features, self.dtype = self.manifest.num_features, DTYPES[self.manifest.dtype]
        self.row_bytes = self.num_features * self.dtype.num_bytes
        count = self.manifest.num_cells * self.num_features
        flat = np.frombuffer(self.map, self.dtype.array_dtype, count, header.data_offset)
        self.features = flat.reshape(-1, self.num_features)  # (all cells, F), read-only
        self.boxes: np.ndarray | None = None  # (all cells, 4), of regions alone
        self.boxes_offset = index.boxes_offset
        if index.boxes_offset is not None:
            count = 4 * self.manifest.num_cells
            self.boxes = np.frombuffer(self.map, BOX_DTYPE, count, index.boxes_offset)
            self.boxes = self.boxes.reshape(-1, 4)

    def __len__(self) -> int:
        return len(self.image_ids)

    def positions(self, image_ids: np.ndarray) -> np.ndarray:
        """Where each image (n,) stands in `image_ids`; -1 when it is not there."""
        return find_places(self.image_ids, image_ids)

    def position(self, image_id: int) -> int:
        """Where one image stands in `image_ids`; raise when it is not there."""
        place = int(self.positions(np.array([image_id]))[0])
        if place < 0:
            raise ValueError(f"image {image_id} is not in {self.path}")
        return place

    def size(self, image_id: int) -> tuple[int, int]:
        """The (height, width) of an image's grid."""
        place = self.position(image_id)
        return int(self.heights[place]), int(self.widths[place])

    def rows(self, image_id: int) -> np.ndarray:
        """An image's features (height·width, F); a copy only with pread."""
        place = self.position(image_id)
        if self.reader == "mmap":
            return self.view(place)
        rows = np.empty_like(self.view(place))
        self.copy_rows(place, rows)
        return rows

    def view(self, place: int) -> np.ndarray:
        """The rows (L, F) of the image at a position without copying."""
        if os.fstat(self.descriptor).st_size < self.header.file_bytes:
            raise self.truncated(place)  # to read a map of what is gone is fatal
        return self.features[self.rows_of(place)]

    def view_boxes(self, place: int) -> np.ndarray | None:
        """The boxes (L, 4) of the image at a position, x1, y1, x2, y2 from 0 to 1; None of a grid.

        They are NaN where the source did not tell the image's size.
        """
        if self.boxes is None or self.boxes_offset is None:
            return None
        boxes = self.boxes[self.rows_of(place)]
        if self.reader == "mmap":
            return boxes
        copied = np.empty_like(boxes)
        row_bytes = copied.itemsize * copied.shape[1]
        self.read(place, self.boxes_offset + int(self.offsets[place]) * row_bytes, copied)
        return copied

    def rows_of(self, place: int) -> slice:
        """Which rows are those of the image at a position."""
        start = int(self.offsets[place])
        return slice(start, start + int(self.heights[place]) * int(self.widths[place]))

    def copy_rows(self, place: int, out: np.ndarray) -> None:
        """Copy the rows of the image at a position into `out` (L, F), contiguous."""
        if self.reader == "mmap":
            np.copyto(out, self.view(place))
            return
        self.read(place, self.header.data_offset + int(self.offsets[place]) * self.row_bytes, out)

    def read(self, place: int, offset: int, out: np.ndarray) -> None:
        """Fill an array with what the file has of an image from a byte on, if it is unchanged."""
        target = out.reshape(-1).view(np.uint8).data
        while len(target):
            count = os.preadv(self.descriptor, [target], offset)
            if count == 0:
                raise self.truncated(place)
            target, offset = target[count:], offset + count
        self.check_unchanged()  # afterwards, so that no change before the read is missed

    def truncated(self, place: int) -> ValueError:
        """The error of a file that became shorter."""
        return ValueError(
            f"{self.path} was truncated while in use (image {self.image_ids[place]} was to be "
            "read); copy or make it again, and start again"
        )

    def advise(self, place: int) -> None:
        """Ask the system to fetch an image's pages from disk in one go, not page by page."""
        start = self.header.data_offset + int(self.offsets[place]) * self.row_bytes
        length = int(self.heights[place]) * int(self.widths[place]) * self.row_bytes
        first = start - start % mmap.PAGESIZE
        if self.reader == "mmap":
            self.map.madvise(mmap.MADV_WILLNEED, first, start + length - first)
        else:
            os.posix_fadvise(self.descriptor, start, length, os.POSIX_FADV_WILLNEED)

    def check(self) -> None:
        """Raise when the open file was changed or cut since it was opened; call it every epoch.

        Another file renamed to the same path does no harm: the old one is still read to the end.
        """
        self.check_unchanged()
        try:
            named = read_identity(os.stat(self.path))
        except FileNotFoundError:
            named = None
        if named != self.identity and not self.warned:
            self.warned = True
            warnings.warn(
                f"{self.path} now names another file; the one opened at the start is read on",
                stacklevel=2,
            )

    def check_unchanged(self) -> None:
        """Raise when the open file was changed or cut since it was opened."""
        if read_identity(os.fstat(self.descriptor)) != self.identity:
            raise ValueError(
                f"{self.path} was changed while in use; replace a store by renaming a finished "
                "one over it, and start again"
            )

    def close(self) -> None:
        """Let go of the file; views taken before stay valid until they are dropped."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
            del self.features, self.boxes, self.map

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def read_identity(status: os.stat_result) -> tuple[int, int, int, int]:
    """What tells one file from another, and from itself after a change."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def find_places(ascending: np.ndarray, image_ids: np.ndarray) -> np.ndarray:
    """Where each image id (n,) stands in an ascending array of them; -1 when it is not there."""
    places = np.searchsorted(ascending, image_ids).clip(max=len(ascending) - 1)
    return np.where(ascending[places] == image_ids, places, -1)
