"""Reads damaged stores in a process of its own: python -m tests.faults.damaged_stores folder mode n

Prints every case before it is tried, so that a crash of the C library can be attributed.
"""

import os
import sys
from pathlib import Path

import numpy as np

from data.features.header import SIZE, Header, write_header
from data.features.reader import FeatureStore
from data.features.verify import verify_store
from tests.data.features.sample_features import draw_rows, write_sample


def write_nan(path: Path, image_id: int | None = None, row: int = 0) -> int:
    """Write a NaN into a row of an image, the third by default, and no checksum; the image's id."""
    with FeatureStore(path) as store:
        place = 2 if image_id is None else store.image_ids.tolist().index(image_id)
        first = (int(store.offsets[place]) + row) * store.num_features
        begin, found = store.header.data_offset, int(store.image_ids[place])
    with open(path, "r+b") as file:
        file.seek(begin + 2 * first)
        file.write(np.float16(np.nan).tobytes())
    return found


def damage(content: bytes, places: np.ndarray, generator: np.random.Generator) -> bytes:
    """Cut, flip, overwrite or shift bytes; `places` are the offsets that may be damaged."""
    damaged = bytearray(content)
    kind = generator.integers(4)
    place = int(generator.choice(places))
    if kind == 0:
        return bytes(damaged[:place])
    if kind == 1:
        return flip(content, places, generator)
    if kind == 2:
        piece = generator.bytes(int(generator.integers(1, 9)))
        damaged[place : place + len(piece)] = piece
    else:
        del damaged[place : place + int(generator.integers(1, 64))]
    return bytes(damaged)


def flip(content: bytes, places: np.ndarray, generator: np.random.Generator) -> bytes:
    """Change bytes but not the file size, so that the checksum can be written again."""
    damaged = bytearray(content)
    for at in generator.choice(places, generator.integers(1, 5)).tolist():
        damaged[at] ^= int(generator.integers(1, 256))
    return bytes(damaged)


def update_checksum(path: Path, header: Header) -> None:
    """Write a header whose checksum fits the damaged bytes."""
    descriptor = os.open(path, os.O_RDWR)
    write_header(descriptor, header.data_offset, header.data_bytes)
    os.close(descriptor)


def classify(path: Path) -> str:
    """How reading a store ends: rejected by name, other rows, or the same rows as written."""
    try:
        with FeatureStore(path) as store:
            verify_store(path)
            expected = draw_rows()
            same = all(np.array_equal(store.rows(n), rows) for n, rows in expected.items())
            return "same" if same else "OTHER ROWS WERE READ"
    except (ValueError, OSError) as error:
        return "rejected" if path.name in str(error) else f"NOT NAMED: {error}"


def main(folder: Path, mode: str, num_cases: int, first: int) -> None:
    """Damage a store `num_cases` times; "signed" updates the checksum, so that HDF5 parses it."""
    path = folder / f"{mode}.h5"
    write_sample(path)
    valid = path.read_bytes()
    with FeatureStore(path) as store:
        header = store.header
    places = np.arange(len(valid))
    rows = (places >= header.data_offset) & (places < header.data_offset + header.data_bytes)
    if mode == "signed":
        places = places[~rows & (places >= SIZE)]
    for number in range(first, first + num_cases):
        generator = np.random.default_rng(number)
        print(number, end=" ", flush=True)
        path.write_bytes((flip if mode == "signed" else damage)(valid, places, generator))
        if mode == "signed":
            update_checksum(path, header)
        print(classify(path), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
