import fcntl
import multiprocessing
import os
import threading

import pytest

import data.io.disk_space
from data.features.staging import stage_store
from data.features.store_set import open_stores
from tests.data.features.sample_features import draw_rows, write_sample


@pytest.fixture
def local(tmp_path):
    return tmp_path / "local"


def test_the_copy_is_the_same_file_and_is_used_again(sample, local):
    copy = stage_store(sample, local)
    assert copy.read_bytes() == sample.read_bytes()
    first = copy.stat()
    assert stage_store(sample, local) == copy
    assert copy.stat().st_ino == first.st_ino
    with open_stores([sample], stage_to=local).stores[0] as store:
        assert store.path == copy
        assert (store.rows(7) == draw_rows()[7]).all()


def test_stores_of_one_name_do_not_displace_each_other(tmp_path, local):
    for seed, name in enumerate("xy"):
        (tmp_path / name).mkdir()
        write_sample(tmp_path / name / "a.h5", seed=seed)
    first, second = (stage_store(tmp_path / name / "a.h5", local) for name in "xy")
    assert first != second
    assert first.read_bytes() == (tmp_path / "x" / "a.h5").read_bytes()


def test_a_damaged_copy_and_what_a_killed_process_left_are_replaced(sample, local):
    copy = stage_store(sample, local)
    os.truncate(copy, 5000)
    stale = copy.with_name(f".{copy.name}.99999.partial")
    stale.write_bytes(b"x")
    assert stage_store(sample, local) == copy
    assert copy.read_bytes() == sample.read_bytes()
    assert not stale.exists()


def test_a_store_that_is_there_already_is_not_copied(sample):
    assert stage_store(sample, sample.parent) == sample


def test_processes_at_the_same_time_make_one_copy(sample, local):
    with multiprocessing.get_context("fork").Pool(4) as pool:
        copies = pool.starmap(stage_store, [(sample, local)] * 8)
    assert len(set(copies)) == 1
    assert [path for path in local.iterdir() if path.suffix == ".h5"] == copies[:1]


def test_a_process_waits_while_another_copies(sample, local):
    copy = stage_store(sample, local)
    copy.unlink()
    done = threading.Event()

    def stage():
        stage_store(sample, local)
        done.set()

    with open(copy.with_name(f".{copy.name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        thread = threading.Thread(target=stage)
        thread.start()
        assert not done.wait(0.2)
        assert not copy.exists()
    thread.join()
    assert copy.exists()


def test_a_disk_without_room_is_rejected_and_left_clean(sample, local, monkeypatch):
    usage = data.io.disk_space.shutil.disk_usage(sample)
    monkeypatch.setattr(
        data.io.disk_space.shutil, "disk_usage", lambda path: usage._replace(free=100)
    )
    with pytest.raises(OSError, match="but only 100 bytes are free"):
        stage_store(sample, local)
    assert [path for path in local.iterdir() if path.suffix != ".lock"] == []


def test_a_truncated_original_is_rejected(sample, local):
    os.truncate(sample, 5000)
    with pytest.raises(ValueError, match="truncated"):
        stage_store(sample, local)
    with pytest.raises(FileNotFoundError, match=r"b\.h5 does not exist"):
        stage_store(sample.with_name("b.h5"), local)
