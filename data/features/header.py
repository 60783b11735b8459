"""The first 4096 bytes of a store: what its file must look like, checked before HDF5 parses it.

They are HDF5's user block, which any HDF5 reader skips. A truncated, damaged or foreign file is
recognised here, so the C library only ever sees metadata that is byte for byte what was written.
"""

import contextlib
import dataclasses
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

from data.io.atomic_files import write_all

SIZE = 4096
MAGIC = b"grid-feature-store"


@dataclasses.dataclass(frozen=True)
class Header:
    """Byte counts of the file and its rows, and the checksum of every byte that is not a row."""

    file_bytes: int
    data_offset: int
    data_bytes: int
    metadata_checksum: int


def write_header(descriptor: int, data_offset: int, data_bytes: int) -> Header:
    """Describe the finished file in its first bytes."""
    file_bytes = os.fstat(descriptor).st_size
    checksum = sum_metadata(descriptor, file_bytes, data_offset, data_bytes)
    header = Header(file_bytes, data_offset, data_bytes, checksum)
    text = json.dumps(dataclasses.asdict(header)).encode()
    line = b"%s %08x %s\n" % (MAGIC, zlib.crc32(text), text)
    write_all(descriptor, line.ljust(SIZE, b"\0"), 0)
    return header


@contextlib.contextmanager
def open_store_file(path: Path) -> Iterator[tuple[int, Header]]:
    """The descriptor of a store's file while the block lasts, and its header, checked."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor, read_header(descriptor, path)
    finally:
        os.close(descriptor)


def read_header(descriptor: int, path: object) -> Header:
    """Read and check the header of an open file; raise a sentence that says what is wrong."""
    line = os.pread(descriptor, SIZE, 0).rstrip(b"\0")
    if not line.startswith(MAGIC):
        raise ValueError(
            f"{path} is not a feature store of this project; make one with "
            "`make features SOURCE=folder OUT=file.h5`"
        )
    try:
        _, checksum, text = line.split(b" ", 2)
        text = text.rstrip(b"\n")
        if int(checksum, 16) != zlib.crc32(text):
            raise ValueError
        header = Header(**json.loads(text))
        if any(type(value) is not int for value in dataclasses.astuple(header)):
            raise TypeError
    except (ValueError, TypeError):
        raise ValueError(f"{path}: the header is damaged; make the store again") from None
    check_header(descriptor, header, path)
    return header


def check_header(descriptor: int, header: Header, path: object) -> None:
    """Raise when the file is not the one its header describes."""
    file_bytes = os.fstat(descriptor).st_size
    if file_bytes != header.file_bytes:
        raise ValueError(
            f"{path} has {file_bytes} bytes, but was written with {header.file_bytes}: "
            "it is truncated or changed; copy or make it again"
        )
    end = header.data_offset + header.data_bytes
    if header.data_offset < SIZE or header.data_bytes < 1 or end > file_bytes:
        raise ValueError(f"{path}: the header places the rows outside the file; make it again")
    if header.metadata_checksum != sum_metadata(
        descriptor, file_bytes, header.data_offset, header.data_bytes
    ):
        raise ValueError(f"{path}: the index does not match its checksum; copy or make it again")


def sum_metadata(descriptor: int, file_bytes: int, data_offset: int, data_bytes: int) -> int:
    """Checksum of every byte outside the header and the rows."""
    checksum = 0
    for start, stop in ((SIZE, data_offset), (data_offset + data_bytes, file_bytes)):
        while start < stop:
            piece = os.pread(descriptor, min(stop - start, 1 << 24), start)
            if not piece:
                break  # the file shrank meanwhile: the sum will not match
            checksum = zlib.crc32(piece, checksum)
            start += len(piece)
    return checksum
