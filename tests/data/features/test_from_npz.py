import os
import zipfile

import h5py
import numpy as np
import pytest

from data.features.from_npz import MOST_REGIONS, convert_regions
from data.features.reader import FeatureStore
from data.features.store_set import open_stores
from data.features.verify import verify_store
from tests.data.features.killed_build import kill_when_stored
from tests.data.features.sample_features import write_npz, write_sample

REGIONS = {7: 10, 3: 4, 12: 10, 40: MOST_REGIONS}


def assert_same(path, files, reader="mmap"):
    with FeatureStore(path, reader) as store:
        assert store.image_ids.tolist() == sorted(files)
        for image_id, arrays in files.items():
            assert store.size(image_id) == (arrays["num_bbox"], 1)
            np.testing.assert_array_equal(store.rows(image_id), arrays["x"].T.astype(np.float16))
            boxes = arrays["bbox"] / [64, 48, 64, 48]
            found = store.view_boxes(store.position(image_id))
            np.testing.assert_allclose(found, boxes, atol=1e-6)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("name", ["COCO_val2014_{:012d}.jpg.npz", "{}.npz"])
def test_either_orientation_gives_a_row_and_a_relative_box_per_region(tmp_path, transposed, name):
    files = write_npz(tmp_path / "npz", REGIONS, transposed=transposed, name=name)
    assert convert_regions(tmp_path / "npz", tmp_path / "a.h5", num_threads=2) == len(files)
    assert_same(tmp_path / "a.h5", files)
    assert_same(tmp_path / "a.h5", files, "pread")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.h5", "npz"]
    report = verify_store(tmp_path / "a.h5")
    assert (report.manifest.cells, report.manifest.backbone) == ("regions", "bottom-up-attention")
    assert report.manifest.resize is None
    assert report.shapes == {(10, 1): 2, (4, 1): 1, (MOST_REGIONS, 1): 1}


def test_boxes_of_a_truncated_store_are_an_error_of_pread(tmp_path):
    write_npz(tmp_path / "npz", REGIONS)
    convert_regions(tmp_path / "npz", tmp_path / "a.h5", num_threads=2)
    with FeatureStore(tmp_path / "a.h5", "pread") as store:
        os.truncate(tmp_path / "a.h5", 0)
        with pytest.raises(ValueError, match=r"a\.h5 was truncated while in use"):
            store.view_boxes(0)


def test_any_hdf5_reader_finds_the_boxes_beside_the_rows(tmp_path):
    files = write_npz(tmp_path / "npz", {5: 3, 2: 2})
    convert_regions(tmp_path / "npz", tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["image_id"][...].tolist() == [2, 5]
        assert file["offset"][...].tolist() == [0, 2]
        boxes = file["boxes"][2:5] * [64, 48, 64, 48]
    np.testing.assert_allclose(boxes, files[5]["bbox"], atol=1e-4)


PROGRAM = """
import sys, time
import data.features.from_npz as convert
read, count = convert.read_regions, 0
def slow(path):
    global count
    count += 1
    if count > 5:  # stand still until killed
        time.sleep(60)
    return read(path)
convert.read_regions = slow
convert.convert_regions(sys.argv[2], sys.argv[1], num_threads=1, commit_bytes=1)
"""


def test_a_killed_conversion_goes_on_and_has_all_boxes(tmp_path):
    files = write_npz(tmp_path / "npz", {n: 2 + n for n in range(12)})
    output = tmp_path / "a.h5"
    kill_when_stored(PROGRAM, output, 5, tmp_path / "npz")
    assert convert_regions(tmp_path / "npz", output) == 12 - 5
    assert_same(output, files)
    convert_regions(tmp_path / "npz", tmp_path / "b.h5")
    assert output.read_bytes() == (tmp_path / "b.h5").read_bytes()


def test_without_the_image_size_rows_are_stored_and_boxes_are_unknown(tmp_path):
    arrays = write_npz(tmp_path / "npz", {5: 3})[5]
    del arrays["image_h"]
    np.savez(tmp_path / "npz" / "COCO_val2014_000000000005.jpg.npz", **arrays)
    convert_regions(tmp_path / "npz", tmp_path / "a.h5")
    with FeatureStore(tmp_path / "a.h5") as store:
        assert np.isnan(store.view_boxes(0)).all()
        np.testing.assert_array_equal(store.rows(5), arrays["x"].T.astype(np.float16))


class Trap:
    """An object whose unpickling would be noticed."""

    def __reduce__(self):
        return exec, ("from tests.data.features import test_from_npz as t; t.SPRUNG.append(1)",)


SPRUNG = []


def drop(name):
    return lambda arrays: arrays.pop(name)


def set_value(name, value):
    return lambda arrays: arrays.__setitem__(name, value)


def change_box(*values):
    def change(arrays):
        arrays["bbox"][1] = values

    return change


def pad_with_zeros(arrays):
    arrays["x"][:, 3] = 0


def put_nan(arrays):
    arrays["x"][2, 1] = np.nan


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop("x"), "9.npz has no 'x'"),
        (drop("bbox"), "9.npz has no 'bbox'"),
        (set_value("x", np.zeros((6, 5), np.float32)), r"'x' is float32 of shape \(6, 5\)"),
        (set_value("x", np.zeros((7, 4), np.float32)), "9.npz has 7 features per region, .* has 6"),
        (set_value("x", np.zeros((6, 4), np.int32)), "'x' is int32"),
        (set_value("x", np.array([Trap()], dtype=object)), "'x' is object of shape"),
        (set_value("bbox", np.array([Trap()], dtype=object)), "'bbox' cannot be read"),
        (set_value("bbox", np.zeros((4, 5))), r"'bbox' is float64 of shape \(4, 5\)"),
        (set_value("bbox", np.zeros((101, 4))), "9.npz has 101 regions, expected 1 to 100"),
        (set_value("num_bbox", 3), "9.npz says num_bbox=3, but has 4 boxes"),
        (set_value("image_w", 0), "'image_w' is not a positive number"),
        (pad_with_zeros, "9.npz: region 3 has zeros alone, which .* take for padding"),
        (put_nan, "9.npz: image 9 has features that are NaN"),
        (change_box(1, 1, 70, 9), "a box is not .* within the image of 64×48 pixels"),
        (change_box(1, -4, 9, 9), "a box is not"),
        (change_box(9, 1, 5, 9), "a box is not"),
        (change_box(1, np.nan, 9, 9), "a box is not"),
    ],
)
def test_a_foreign_file_is_named_in_one_sentence_and_no_store_is_made(tmp_path, change, message):
    files = write_npz(tmp_path / "npz", {3: 4, 9: 4}, name="{}.npz")
    arrays = dict(files[9])
    change(arrays)
    np.savez(tmp_path / "npz" / "9.npz", **arrays)
    with pytest.raises(ValueError, match=message) as caught:
        convert_regions(tmp_path / "npz", tmp_path / "a.h5")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "a.h5").exists()
    assert not SPRUNG


@pytest.mark.parametrize("content", [b"", b"PK\3\4 no archive", b"\x93NUMPY"])
def test_a_file_that_is_no_archive_is_named(tmp_path, content):
    write_npz(tmp_path / "npz", {3: 4})
    (tmp_path / "npz" / "9.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"9\.npz is damaged or not a \.npz file"):
        convert_regions(tmp_path / "npz", tmp_path / "a.h5")
    assert list(tmp_path.iterdir()) == [tmp_path / "npz"]


def test_a_truncated_file_is_named(tmp_path):
    write_npz(tmp_path / "npz", {3: 4})
    path = next((tmp_path / "npz").iterdir())
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match="is damaged or not"):
        convert_regions(tmp_path / "npz", tmp_path / "a.h5")


def test_a_file_with_a_name_that_is_no_text_is_named(tmp_path):
    write_npz(tmp_path / "npz", {3: 4})
    path = next((tmp_path / "npz").iterdir())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("é", b"")
    path.write_bytes(path.read_bytes().replace("é".encode(), b"\xa9\xa9"))
    with pytest.raises(ValueError, match="is damaged or not"):
        convert_regions(tmp_path / "npz", tmp_path / "a.h5")


def test_a_box_may_touch_the_border_by_a_pixel(tmp_path):
    arrays = write_npz(tmp_path / "npz", {3: 4}, name="{}.npz")[3]
    arrays["bbox"][0] = (-0.4, 0, 64.5, 48)
    np.savez(tmp_path / "npz" / "3.npz", **arrays)
    convert_regions(tmp_path / "npz", tmp_path / "a.h5")
    with FeatureStore(tmp_path / "a.h5") as store:
        assert store.view_boxes(0)[0].tolist() == [0, 0, 1, 1]


def test_regions_and_grids_are_not_read_as_one(tmp_path):
    write_npz(tmp_path / "npz", {3: 4}, num_features=5)
    convert_regions(tmp_path / "npz", tmp_path / "a.h5", backbone="patch")
    write_sample(tmp_path / "b.h5")
    with pytest.raises(ValueError, match=r"b\.h5 holds features with cells grid, but cells reg"):
        open_stores([tmp_path / "a.h5", tmp_path / "b.h5"])
    stores = open_stores([tmp_path / "a.h5"])
    with pytest.raises(ValueError, match=r"a\.h5 holds regions, which form no grid .* and x does"):
        stores.require_grid("x does not work on them")
    open_stores([tmp_path / "b.h5"]).require_grid("this works")
