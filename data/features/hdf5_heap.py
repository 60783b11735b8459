"""The heap of an HDF5 file, where its texts are: checked before the C library walks along it.

At an object whose size is damaged the library goes on for ever. The store's checksum catches
chance, so only a file that was made to do harm gets here.
"""

import os
import struct
from collections.abc import Iterator

from data.features.header import SIZE, Header

SIGNATURE = b"GCOL\1\0\0\0"  # with the format's version, and zeros
SIZES = struct.Struct("<8xQ")  # bytes of a collection, its head included
OBJECT = struct.Struct("<H6xQ")  # number, 0 for what is free up to the end; bytes behind this head
PIECE = 1 << 20


def check_heaps(descriptor: int, header: Header, path: object) -> None:
    """Raise unless the objects of every collection lie one behind the other up to its end."""
    for start in find_collections(descriptor, header):
        (size,) = SIZES.unpack(os.pread(descriptor, SIZES.size, start))
        place, end = start + SIZES.size, start + size
        if end > header.file_bytes:
            raise ValueError(f"{path}: the texts of its metadata end behind the file")
        while OBJECT.size <= end - place:
            number, length = OBJECT.unpack(os.pread(descriptor, OBJECT.size, place))
            length = length if number == 0 else OBJECT.size + -(-length // 8) * 8
            if (number == 0 and length != end - place) or length > end - place:
                raise ValueError(f"{path}: a text of its metadata has a wrong length")
            place += length


def find_collections(descriptor: int, header: Header) -> Iterator[int]:
    """Where the collections of the heap begin, outside the rows."""
    end = header.data_offset + header.data_bytes
    for start, stop in ((SIZE, header.data_offset), (end, header.file_bytes)):
        while start < stop:
            overlap = len(SIGNATURE) - 1
            piece = os.pread(descriptor, min(PIECE + overlap, stop - start), start)
            found = piece.find(SIGNATURE)
            while found >= 0:
                if (start + found) % 8 == 0 and found + SIZES.size <= stop - start:
                    yield start + found
                found = piece.find(SIGNATURE, found + 1)
            start += PIECE
