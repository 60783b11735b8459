import fcntl
import multiprocessing
import os
import threading

import pytest

import data.io.disk_space
from data.features.reader import FeatureStore
from data.features.staging import stage_store
from data.features.store_set import open_stores
from tests.data.features.sample_features import write_sample


def test_the_copy_is_the_same_file_and_is_used_again(tmp_path):
    write_sample(tmp_path / "a.h5")
    copy = stage_store(tmp_path / "a.h5", tmp_path / "local")
    assert copy.read_bytes() == (tmp_path / "a.h5").read_bytes()
    first = copy.stat()
    assert stage_store(tmp_path / "a.h5", tmp_path / "local") == copy
    assert copy.stat().st_ino == first.st_ino
    with open_stores([tmp_path / "a.h5"], stage_to=tmp_path / "local").stores[0] as store:
        assert store.path == copy


def test_stores_of_one_name_do_not_displace_each_other(tmp_path):
    for seed, name in enumerate("xy"):
        (tmp_path / name).mkdir()
        write_sample(tmp_path / name / "a.h5", seed=seed)
    first, second = (stage_store(tmp_path / name / "a.h5", tmp_path / "local") for name in "xy")
    assert first != second
    assert first.read_bytes() == (tmp_path / "x" / "a.h5").read_bytes()


def test_a_damaged_copy_and_what_a_killed_process_left_are_replaced(tmp_path):
    write_sample(tmp_path / "a.h5")
    copy = stage_store(tmp_path / "a.h5", tmp_path / "local")
    os.truncate(copy, 5000)
    stale = copy.with_name(f".{copy.name}.99999.partial")
    stale.write_bytes(b"x")
    assert stage_store(tmp_path / "a.h5", tmp_path / "local") == copy
    assert copy.read_bytes() == (tmp_path / "a.h5").read_bytes()
    assert not stale.exists()


def test_a_store_that_is_there_already_is_not_copied(tmp_path):
    write_sample(tmp_path / "a.h5")
    assert stage_store(tmp_path / "a.h5", tmp_path) == tmp_path / "a.h5"


def test_processes_at_the_same_time_make_one_copy(tmp_path):
    write_sample(tmp_path / "a.h5")
    with multiprocessing.get_context("fork").Pool(4) as pool:
        copies = pool.starmap(stage_store, [(tmp_path / "a.h5", tmp_path / "local")] * 8)
    assert len(set(copies)) == 1
    assert [path for path in (tmp_path / "local").iterdir() if path.suffix == ".h5"] == copies[:1]


def test_a_process_waits_while_another_copies(tmp_path):
    write_sample(tmp_path / "a.h5")
    copy = stage_store(tmp_path / "a.h5", tmp_path / "local")
    copy.unlink()
    done = threading.Event()

    def stage():
        stage_store(tmp_path / "a.h5", tmp_path / "local")
        done.set()

    with open(copy.with_name(f".{copy.name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        thread = threading.Thread(target=stage)
        thread.start()
        assert not done.wait(0.2)
        assert not copy.exists()
    thread.join()
    assert copy.exists()


def test_a_disk_without_room_is_rejected_and_left_clean(tmp_path, monkeypatch):
    write_sample(tmp_path / "a.h5")
    usage = data.io.disk_space.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(
        data.io.disk_space.shutil, "disk_usage", lambda path: usage._replace(free=100)
    )
    with pytest.raises(OSError, match="but only 100 bytes are free"):
        stage_store(tmp_path / "a.h5", tmp_path / "local")
    assert [path for path in (tmp_path / "local").iterdir() if path.suffix != ".lock"] == []


def test_a_truncated_original_is_rejected(tmp_path):
    write_sample(tmp_path / "a.h5")
    os.truncate(tmp_path / "a.h5", 5000)
    with pytest.raises(ValueError, match="truncated"):
        stage_store(tmp_path / "a.h5", tmp_path / "local")
    with pytest.raises(FileNotFoundError, match=r"b\.h5 does not exist"):
        stage_store(tmp_path / "b.h5", tmp_path / "local")


def test_the_copy_opens_as_a_store(tmp_path):
    rows = write_sample(tmp_path / "a.h5")
    with FeatureStore(stage_store(tmp_path / "a.h5", tmp_path / "local")) as store:
        assert (store.rows(7) == rows[7]).all()
