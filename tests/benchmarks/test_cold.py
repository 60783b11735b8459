"""Works on a cold store read all of it, each in its own way."""

import os

import pytest

from benchmarks.parts.cold import RANDOM, SEQUENTIAL, drop_from_cache, list_works, measure
from benchmarks.sample_features import write_files, write_store
from data.features.store_set import open_stores


@pytest.fixture
def store(tmp_path):
    write_files(tmp_path / "pth", 40, num_features=128)
    write_store(tmp_path / "pth", tmp_path / "store.h5")
    return tmp_path / "store.h5"


def test_every_work_reads_all_of_the_store_once(store):
    read = {name: work() for name, work in list_works(store, 40).items()}
    stores = open_stores([store])
    features = stores.stores[0].header.data_bytes
    stores.close()
    assert {read.pop(SEQUENTIAL), read.pop(RANDOM)} == {store.stat().st_size}
    assert list(read.values()) == 4 * [features]  # both readers, with few threads and many


def test_a_dropped_file_is_not_in_memory(store):
    store.read_bytes()
    drop_from_cache(store)
    with open(store, "rb") as file:
        try:
            count = os.preadv(file.fileno(), [bytearray(4096)], 1 << 20, os.RWF_NOWAIT)
        except BlockingIOError:
            return
        except OSError:
            pytest.skip("this file system does not say what is in memory")
    assert count == 0


def test_the_row_is_of_the_advised_reader(store):
    part = measure(store, 40, rounds=2)
    (row,) = part.rows
    assert row.work == "loading a cold store, pread, 8 threads"
    assert len(row.values) == 2
