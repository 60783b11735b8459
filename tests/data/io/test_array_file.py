"""An array file is whole or absent, and what was committed of it is not written again."""

import shutil

import h5py
import numpy as np
import pytest

from data.io.array_file import ArrayFileWriter, RowArray
from data.io.disk_space import format_bytes

ARRAYS = {
    "ids": RowArray((5,), np.dtype(np.int64)),
    "layers/first.a": RowArray((5, 2, 3), np.dtype(np.float16)),
}
KNOWN = {"texts": ["é", "b\n"], "sizes": np.arange(4).reshape(2, 2)}
IDENTITY = {"model": "m", "layers": ["a"], "number": 3}
VALUES = np.arange(30).reshape(5, 2, 3)


def open_writer(path, **changes):
    given = {"arrays": ARRAYS, "known": KNOWN, "identity": IDENTITY, **changes}
    return ArrayFileWriter(path, **given)


def write(writer, number, rows):
    rows = np.array(rows)
    writer.write("ids", rows, 10 * rows)
    writer.write("layers/first.a", rows, VALUES[rows].astype(np.float64))
    writer.commit(number, 7 + number)


def leave_unfinished(path, **changes):
    """Commit two rows, write another, and end before all are there."""
    with open_writer(path, **changes) as writer:
        writer.write("ids", np.array([3, 0]), np.array([30, 0]))
        if "layers/first.a" in writer.arrays:
            writer.write("layers/first.a", np.array([3, 0]), VALUES[[3, 0]])
        writer.commit(0, 7)
        writer.write("ids", np.array([1]), np.array([999]))  # not committed: to be written again
        raise KeyboardInterrupt


def assert_complete(path):
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    with h5py.File(path) as file:
        assert file["ids"][:].tolist() == [0, 10, 20, 30, 40]
        assert np.array_equal(file["layers/first.a"], VALUES)
        assert file["texts"].asstr()[:].tolist() == KNOWN["texts"]
        assert np.array_equal(file["sizes"], KNOWN["sizes"])
        assert dict(file.attrs) == {"model": "m", "layers": '["a"]', "number": 3}


def test_rows_are_where_they_were_written_in_any_order(tmp_path):
    path = tmp_path / "new" / "a.h5"
    with open_writer(path) as writer:
        write(writer, 0, [3, 0])
        write(writer, 1, [4, 1, 2])
        assert not path.exists()
    assert_complete(path)


def test_an_ended_writer_leaves_nothing_under_the_name_and_is_resumed(tmp_path):
    path = tmp_path / "a.h5"
    with pytest.raises(KeyboardInterrupt):
        leave_unfinished(path)
    assert not path.exists()
    with open_writer(path) as writer:
        assert writer.done == {0: 7}
        write(writer, 1, [4, 1, 2])
    assert_complete(path)


@pytest.mark.parametrize("damage", ["cut", "gone", "foreign", "layout"])
def test_an_unfinished_file_that_cannot_be_resumed_is_begun_again(tmp_path, damage):
    path, partial = tmp_path / "a.h5", tmp_path / "a.h5.partial"
    arrays = {"ids": ARRAYS["ids"]} if damage == "layout" else ARRAYS
    with pytest.raises(KeyboardInterrupt):
        leave_unfinished(path, arrays=arrays)
    if damage == "cut":
        partial.write_bytes(partial.read_bytes()[:-20])
    elif damage == "foreign":
        partial.write_bytes(b"something else")
    elif damage == "gone":
        partial.unlink()
    with open_writer(path) as writer:
        assert writer.done == {}
        write(writer, 0, [0, 1, 2, 3, 4])
    assert_complete(path)


def test_an_unfinished_file_about_something_else_is_not_touched(tmp_path):
    path = tmp_path / "a.h5"
    with pytest.raises(KeyboardInterrupt):
        leave_unfinished(path)
    other = {**IDENTITY, "number": 4}
    with pytest.raises(ValueError, match=r"a.h5.partial was begun with number 3, not 4; finish"):
        open_writer(path, identity=other)
    with open_writer(path) as writer:
        assert writer.done == {0: 7}
        write(writer, 1, [4, 1, 2])
    assert_complete(path)


def test_two_writers_of_one_file_exclude_each_other(tmp_path):
    with open_writer(tmp_path / "a.h5") as writer:
        with pytest.raises(ValueError, match="held by another process that is writing the same"):
            open_writer(tmp_path / "a.h5")
        write(writer, 0, [0, 1, 2, 3, 4])
    assert_complete(tmp_path / "a.h5")


def test_a_file_that_is_there_is_replaced_only_when_the_new_one_is_complete(tmp_path):
    path = tmp_path / "a.h5"
    path.write_text("before")
    with pytest.raises(FileExistsError, match="exists already"):
        open_writer(path)
    with open_writer(path, force=True) as writer:
        write(writer, 0, [0, 1, 2, 3, 4])
        assert path.read_text() == "before"
    assert_complete(path)


def test_a_file_that_the_disk_has_no_room_for_is_not_begun(tmp_path):
    free = shutil.disk_usage(tmp_path).free
    huge = {"weights": RowArray((free // 1000, 1000), np.dtype(np.float16))}
    needed = format_bytes(huge["weights"].num_bytes)
    with pytest.raises(OSError, match=rf"a\.h5 needs {needed} in .* are free; make room"):
        open_writer(tmp_path / "a.h5", arrays=huge)
    assert list(tmp_path.iterdir()) == []


def test_rows_of_another_shape_are_an_error(tmp_path):
    message = r"'ids' got values of shape \(2, 1\), expected \(2,\)"
    with open_writer(tmp_path / "a.h5") as writer, pytest.raises(ValueError, match=message):
        writer.write("ids", np.array([0, 1]), np.zeros((2, 1)))
