"""Damaged feature stores: the plain bytes, or the index with a checksum that fits the damage."""

import os
import random
from pathlib import Path

import numpy as np

from data.features.header import SIZE, Header, write_header
from data.features.reader import FeatureStore
from data.features.verify import verify_store
from tests.data.features.sample_features import draw_rows, write_sample
from tests.faults.fuzzing import Case, Fixture, Format, Fuzzer


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


def read_rows(path: Path) -> dict[int, np.ndarray]:
    """All rows of a store that is verified to be sound."""
    with FeatureStore(path) as store:
        verify_store(path)
        return {n: np.array(store.rows(n)) for n in store.image_ids.tolist()}


def check_rows(rows: dict[int, np.ndarray]) -> None:
    """A store that is read at all holds what was written."""
    expected = draw_rows()
    assert rows.keys() == expected.keys()
    assert all(np.array_equal(rows[n], expected[n]) for n in rows)


STORE = Format("HDF5 stores, plain", "plain.h5", write_sample, read_rows, check_rows)


def prepare_signed(folder: Path, _: Fixture) -> Case:
    """Flipped bits of the index with a checksum that fits them, so that HDF5 parses them."""
    path = folder / "signed.h5"
    write_sample(path)
    valid = path.read_bytes()
    with FeatureStore(path) as store:
        header = store.header
    rows = range(header.data_offset, header.data_offset + header.data_bytes)
    places = [place for place in range(SIZE, len(valid)) if place not in rows]

    def flip_and_read(chance: random.Random) -> None:
        damaged = bytearray(valid)
        for place in chance.sample(places, chance.randint(1, 4)):
            damaged[place] ^= chance.randint(1, 255)
        path.write_bytes(damaged)
        update_checksum(path, header)
        STORE.read_or_reject(path)

    return flip_and_read


def update_checksum(path: Path, header: Header) -> None:
    """Write a header whose checksum fits the damaged bytes."""
    descriptor = os.open(path, os.O_RDWR)
    write_header(descriptor, header.data_offset, header.data_bytes)
    os.close(descriptor)


FUZZERS = [
    Fuzzer(STORE.name, STORE.prepare, 1200),
    Fuzzer("HDF5 stores, signed", prepare_signed, 500),
]
