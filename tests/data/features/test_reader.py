import mmap
import os
import warnings

import h5py
import numpy as np
import pytest

from data.features.reader import FeatureStore
from tests.data.features.sample_features import SIZES, draw_rows, write_sample


@pytest.mark.parametrize("reader", ["mmap", "pread"])
def test_every_image_is_read_back_as_written(sample, reader):
    with FeatureStore(sample, reader=reader) as store:
        assert store.image_ids.tolist() == sorted(SIZES)
        for image_id, expected in draw_rows().items():
            assert store.size(image_id) == SIZES[image_id]
            assert store.rows(image_id).dtype == np.float16
            np.testing.assert_array_equal(store.rows(image_id), expected)


def test_any_h5py_user_can_read_the_file(sample):
    rows = draw_rows()
    with h5py.File(sample) as file:
        assert file["features"].chunks is None
        for n, image_id in enumerate(file["image_id"][...].tolist()):
            start = file["offset"][n]
            stop = start + file["height"][n] * file["width"][n]
            np.testing.assert_array_equal(file["features"][start:stop], rows[image_id])


def test_mapped_rows_are_views_that_cannot_be_written(sample):
    with FeatureStore(sample) as store:
        rows = store.rows(7)
        assert np.shares_memory(rows, np.frombuffer(store.map, dtype=np.uint8))
        assert isinstance(store.map, mmap.mmap)
        with pytest.raises(ValueError, match="read-only"):
            rows[0, 0] = 1


@pytest.mark.parametrize("image_id", [0, 8, 99])
def test_a_missing_image_is_named(sample, image_id):
    with (
        FeatureStore(sample) as store,
        pytest.raises(ValueError, match=f"image {image_id} is not in .*a.h5"),
    ):
        store.rows(image_id)


def test_a_store_replaced_by_rename_is_read_on(sample, tmp_path):
    write_sample(tmp_path / "b.h5", seed=1)
    with FeatureStore(sample) as store:
        os.replace(tmp_path / "b.h5", sample)
        with pytest.warns(UserWarning, match="now names another file"):
            store.check()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            store.check()  # said once
        for image_id, expected in draw_rows().items():
            np.testing.assert_array_equal(store.rows(image_id), expected)


@pytest.mark.parametrize("change", ["truncate", "append", "write"])
def test_a_file_changed_while_in_use_is_rejected_at_the_next_epoch(sample, change):
    with FeatureStore(sample) as store:
        store.check()
        size = sample.stat().st_size
        with open(sample, "r+b") as file:
            if change == "truncate":
                file.truncate(size - 1)
            else:
                file.seek(size if change == "append" else store.header.data_offset)
                file.write(b"xx")
        # a change of size shows by itself; another one by its time
        os.utime(sample, ns=(0, store.identity[3] + (change == "write")))
        with pytest.raises(ValueError, match="was changed while in use"):
            store.check()


def test_reading_by_pread_names_the_image_when_the_file_is_cut(sample):
    with FeatureStore(sample, reader="pread") as store:
        os.truncate(sample, store.header.data_offset + 10)
        with pytest.raises(ValueError, match=r"truncated while in use \(image 30"):
            store.copy_rows(store.position(30), np.empty((6, 5), dtype=np.float16))


@pytest.mark.parametrize(("kept", "problem"), [(40, "truncated"), (70, "changed")])
def test_a_file_cut_in_the_middle_of_a_copy_by_pread_is_named(sample, monkeypatch, kept, problem):
    """The third of its short reads finds less, or all of the image but not of the file."""
    num_reads = 0

    def read_little(descriptor, buffers, offset):
        nonlocal num_reads
        num_reads += 1
        if num_reads == 3:
            os.truncate(sample, start + kept)
        return preadv(descriptor, [buffers[0][:16]], offset)

    with FeatureStore(sample, reader="pread") as store:
        place, preadv = store.position(7), os.preadv
        start = store.header.data_offset + int(store.offsets[place]) * store.row_bytes
        monkeypatch.setattr(os, "preadv", read_little)
        with pytest.raises(ValueError, match=f"{sample} was {problem} while in use"):
            store.copy_rows(place, np.empty((6, 5), dtype=np.float16))  # 60 bytes


def test_a_file_rewritten_in_place_is_noticed_by_pread_at_the_next_image(sample):
    with FeatureStore(sample, reader="pread") as store:
        with open(sample, "r+b") as file:
            file.seek(store.header.data_offset)
            file.write(b"xx")
        os.utime(sample, ns=(0, store.identity[3] + 1))
        with pytest.raises(ValueError, match="was changed while in use"):
            store.rows(7)


def test_what_is_no_store_or_reader_is_named(tmp_path):
    with pytest.raises(ValueError, match="expected one of mmap, pread"):
        FeatureStore(tmp_path / "a.h5", reader="read")
    with pytest.raises(IsADirectoryError, match="is a folder; name the store in it"):
        FeatureStore(tmp_path)


def test_the_manifest_of_another_backbone_or_resize_is_rejected(sample):
    with FeatureStore(sample) as store:
        store.manifest.require("a.h5", backbone="patch", num_features=5)
        with pytest.raises(ValueError, match=r"backbone patch, but backbone R-50 is asked for"):
            store.manifest.require("a.h5", backbone="R-50")
        with pytest.raises(ValueError, match=r"resize None, but resize \(600, 1000\)"):
            store.manifest.require("a.h5", resize=[600, 1000])
