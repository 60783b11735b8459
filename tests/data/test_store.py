import mmap
import os
import warnings

import h5py
import numpy as np
import pytest
import torch

from data.header import write_header
from data.store import FeatureStore, StoreWriter
from tests.data.sample_features import SIZES, draw_rows, write_sample


@pytest.mark.parametrize("reader", ["mmap", "pread"])
def test_every_image_is_read_back_as_written(tmp_path, reader):
    rows = write_sample(tmp_path / "a.h5")
    with FeatureStore(tmp_path / "a.h5", reader=reader) as store:
        assert store.image_ids.tolist() == sorted(SIZES)
        for image_id, expected in rows.items():
            assert store.size(image_id) == SIZES[image_id]
            assert store.rows(image_id).dtype == np.float16
            np.testing.assert_array_equal(store.rows(image_id), expected)


def test_any_h5py_user_can_read_the_file(tmp_path):
    rows = write_sample(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["features"].chunks is None
        for n, image_id in enumerate(file["image_id"][...].tolist()):
            start = file["offset"][n]
            stop = start + file["height"][n] * file["width"][n]
            np.testing.assert_array_equal(file["features"][start:stop], rows[image_id])


def test_mapped_rows_are_views_that_cannot_be_written(tmp_path):
    write_sample(tmp_path / "a.h5")
    with FeatureStore(tmp_path / "a.h5") as store:
        rows = store.rows(7)
        assert np.shares_memory(rows, np.frombuffer(store.map, dtype=np.uint8))
        assert isinstance(store.map, mmap.mmap)
        with pytest.raises(ValueError, match="read-only"):
            rows[0, 0] = 1


def test_equal_contents_give_equal_bytes(tmp_path):
    write_sample(tmp_path / "a.h5")
    write_sample(tmp_path / "b.h5")
    write_sample(tmp_path / "c.h5", seed=1)
    contents = [(tmp_path / f"{name}.h5").read_bytes() for name in "abc"]
    assert contents[0] == contents[1] != contents[2]


def test_rows_of_float32_tensors_are_rounded_to_float16(tmp_path):
    rows = torch.randn(6, 5)
    with StoreWriter(tmp_path / "a.h5", {1: (2, 3)}, 5, source="s", backbone="b") as writer:
        writer.write(1, rows.t().contiguous().t())  # as after a transpose
    with FeatureStore(tmp_path / "a.h5") as store:
        np.testing.assert_array_equal(store.rows(1), rows.numpy().astype(np.float16))


@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, "image 7 has features that are NaN"), (1e5, r"image 7 has a feature of 1e\+05")],
)
def test_numbers_that_float16_cannot_hold_are_refused_and_nothing_is_left(tmp_path, value, message):
    rows = {image_id: array.astype(np.float32) for image_id, array in draw_rows().items()}
    rows[7][2, 1] = value
    with (
        pytest.raises(ValueError, match=message),
        StoreWriter(tmp_path / "a.h5", SIZES, 5, source="s", backbone="b") as writer,
    ):
        for image_id, array in rows.items():
            writer.write(image_id, array)
    assert list(tmp_path.iterdir()) == []


def test_a_store_with_an_image_unwritten_is_not_finished(tmp_path):
    with (
        pytest.raises(ValueError, match="1 images were not written, as 30"),
        StoreWriter(tmp_path / "a.h5", SIZES, 5, source="s", backbone="b") as writer,
    ):
        for image_id, array in draw_rows().items():
            if image_id != 30:
                writer.write(image_id, array)
    assert list(tmp_path.iterdir()) == []


def test_rows_of_another_shape_or_image_are_refused(tmp_path):
    with (
        pytest.raises(ValueError, match=r"image 7 has rows of shape \(5, 5\), expected \(6, 5\)"),
        StoreWriter(tmp_path / "a.h5", SIZES, 5, source="s", backbone="b") as writer,
    ):
        with pytest.raises(ValueError, match="image 8 is not one of"):
            writer.write(8, np.zeros((6, 5)))
        writer.write(7, np.zeros((5, 5)))


def test_an_existing_store_is_replaced_only_by_force(tmp_path):
    write_sample(tmp_path / "a.h5")
    with pytest.raises(FileExistsError, match="exists already"):
        write_sample(tmp_path / "a.h5")
    sizes = {1: (1, 1)}
    with StoreWriter(tmp_path / "a.h5", sizes, 1, source="s", backbone="b", force=True) as writer:
        writer.write(1, np.ones((1, 1)))
    with FeatureStore(tmp_path / "a.h5") as store:
        assert store.image_ids.tolist() == [1]


def test_two_writers_of_one_store_do_not_mix(tmp_path):
    with StoreWriter(tmp_path / "a.h5", {1: (1, 1)}, 1, source="s", backbone="b") as writer:
        with pytest.raises(ValueError, match="held by another process"):
            StoreWriter(tmp_path / "a.h5", {1: (1, 1)}, 1, source="s", backbone="b")
        writer.write(1, np.ones((1, 1)))


def test_grids_larger_than_the_resize_allows_are_refused(tmp_path):
    options = {"source": "s", "backbone": "R-50", "resize": (600, 1000)}
    with pytest.raises(ValueError, match=r"image 5 has 20×32 = 640 cells.* at most 19×32 = 608"):
        StoreWriter(tmp_path / "a.h5", {4: (19, 32), 5: (20, 32)}, 1, **options)
    with pytest.raises(ValueError, match=r"image 5 has 4×152"):
        StoreWriter(tmp_path / "a.h5", {5: (4, 152)}, 1, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_image_is_named(tmp_path):
    write_sample(tmp_path / "a.h5")
    with FeatureStore(tmp_path / "a.h5") as store:
        for image_id in (0, 8, 99):
            with pytest.raises(ValueError, match=f"image {image_id} is not in .*a.h5"):
                store.rows(image_id)


def test_a_store_replaced_by_rename_is_read_on(tmp_path):
    rows = write_sample(tmp_path / "a.h5")
    write_sample(tmp_path / "b.h5", seed=1)
    with FeatureStore(tmp_path / "a.h5") as store:
        os.replace(tmp_path / "b.h5", tmp_path / "a.h5")
        with pytest.warns(UserWarning, match="now names another file"):
            store.check()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            store.check()  # said once
        for image_id, expected in rows.items():
            np.testing.assert_array_equal(store.rows(image_id), expected)


@pytest.mark.parametrize("change", ["truncate", "append", "write"])
def test_a_file_changed_while_in_use_is_refused_at_the_next_epoch(tmp_path, change):
    path = tmp_path / "a.h5"
    write_sample(path)
    with FeatureStore(path) as store:
        store.check()
        with open(path, "r+b") as file:
            if change == "truncate":
                file.truncate(path.stat().st_size - 1)
            elif change == "append":
                file.seek(0, os.SEEK_END)
                file.write(b"x")
            else:
                file.seek(store.header.data_offset)
                file.write(b"xx")
        os.utime(path, ns=(0, store.identity[3] + 1))  # as the clock would have it
        with pytest.raises(ValueError, match="was changed while in use"):
            store.check()


def test_reading_by_pread_names_the_image_when_the_file_is_cut(tmp_path):
    path = tmp_path / "a.h5"
    write_sample(path)
    with FeatureStore(path, reader="pread") as store:
        os.truncate(path, store.header.data_offset + 10)
        with pytest.raises(ValueError, match="ends inside image 30"):
            store.copy_rows(store.position(30), np.empty((6, 5), dtype=np.float16))


def test_an_unknown_reader_is_refused(tmp_path):
    with pytest.raises(ValueError, match="expected one of mmap, pread"):
        FeatureStore(tmp_path / "a.h5", reader="read")


def test_the_manifest_of_another_backbone_or_resize_is_refused(tmp_path):
    write_sample(tmp_path / "a.h5")
    with FeatureStore(tmp_path / "a.h5") as store:
        store.manifest.require("a.h5", backbone="patch", num_features=5)
        with pytest.raises(ValueError, match=r"backbone patch, but backbone R-50 is asked for"):
            store.manifest.require("a.h5", backbone="R-50")
        with pytest.raises(ValueError, match=r"resize None, but resize \(600, 1000\)"):
            store.manifest.require("a.h5", resize=[600, 1000])


def tamper(path, change):
    """Change a store through h5py and sign it anew, as somebody might who means to deceive."""
    with FeatureStore(path) as store:
        header = store.header
    with h5py.File(path, "r+") as file:
        change(file)
    descriptor = os.open(path, os.O_RDWR)
    write_header(descriptor, header.data_offset, header.data_bytes)
    os.close(descriptor)


def set_array(name, place, value):
    def change(file):
        file[name][place] = value

    return change


def set_manifest(**fields):
    def change(file):
        import json

        file.attrs["manifest"] = json.dumps({**json.loads(file.attrs["manifest"]), **fields})

    return change


def retype(file):
    rows = file["features"][...]
    del file["features"]
    file["features"] = rows.astype(np.float32)


def compress(file):
    rows = file["features"][...]
    del file["features"]
    file.create_dataset("features", data=rows, compression="gzip")


def drop(name):
    def change(file):
        del file[name]

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_array("offset", 2, 10_000), "rows of image 12 lie outside"),
        (set_array("offset", 2, -1), "rows of image 12 lie outside"),
        (set_array("height", 5, 3), "rows of image 30 lie outside"),
        (set_array("height", 0, 0), "grid of 0×2"),
        (set_array("image_id", 2, 7), "image 7 is there twice"),
        (set_array("checksum", 0, 1), "does not match the manifest's checksum"),
        (set_manifest(num_images=7), "the manifest says"),
        (set_manifest(num_features=6), "the manifest says"),
        (set_manifest(version=99), "format version 99"),
        (set_manifest(dtype="float32"), "expected 'float16'"),
        (set_manifest(resize="600"), "expected .short side, long side"),
        (set_manifest(resize=[32, 64]), "image 3 has 3×2 = 6 cells.* at most 1×2"),
        (set_manifest(extra=1), "extra.* are missing or unknown"),
        (retype, "float32, expected a 2-D array of float16"),
        (compress, "not stored in one contiguous piece"),
        (drop("width"), "lacks a part"),
        (drop("features"), "lacks a part"),
        (lambda file: file.attrs.__delitem__("manifest"), "lacks a part"),
    ],
)
def test_an_unsound_index_is_refused_at_opening(tmp_path, change, message):
    write_sample(tmp_path / "a.h5")
    tamper(tmp_path / "a.h5", change)
    with pytest.raises(ValueError, match=f"a.h5.*{message}"):
        FeatureStore(tmp_path / "a.h5")


def test_a_truncated_store_is_refused_wherever_it_is_cut(tmp_path):
    write_sample(tmp_path / "a.h5")
    whole = (tmp_path / "a.h5").read_bytes()
    for length in [*range(0, len(whole), 997), len(whole) - 1]:
        (tmp_path / "cut.h5").write_bytes(whole[:length])
        with pytest.raises(ValueError, match="cut.h5"):
            FeatureStore(tmp_path / "cut.h5")


def test_a_changed_byte_outside_the_rows_is_refused_before_hdf5_reads_it(tmp_path):
    path = tmp_path / "a.h5"
    write_sample(path)
    whole = bytearray(path.read_bytes())
    with FeatureStore(path) as store:
        rows = range(store.header.data_offset, store.header.data_offset + store.header.data_bytes)
    generator = np.random.default_rng(0)
    for place in generator.integers(4096, len(whole), 200).tolist():
        if place in rows:
            continue
        changed = whole.copy()
        changed[place] ^= 0xFF
        (tmp_path / "changed.h5").write_bytes(changed)
        with pytest.raises(ValueError, match="does not match its checksum"):
            FeatureStore(tmp_path / "changed.h5")


def test_foreign_files_are_refused(tmp_path):
    with h5py.File(tmp_path / "foreign.h5", "w") as file:
        file["features"] = np.zeros((3, 4))
    (tmp_path / "text.h5").write_text("hello")
    (tmp_path / "empty.h5").touch()
    for name in ("foreign.h5", "text.h5", "empty.h5"):
        with pytest.raises(ValueError, match=f"{name} is not a feature store"):
            FeatureStore(tmp_path / name)
    with pytest.raises(FileNotFoundError, match="absent.h5 does not exist"):
        FeatureStore(tmp_path / "absent.h5")
