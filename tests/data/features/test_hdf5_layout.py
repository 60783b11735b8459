import json
import os

import h5py
import numpy as np
import pytest

from data.features.from_npz import convert_regions
from data.features.header import write_header
from data.features.reader import FeatureStore
from tests.data.features.sample_features import write_npz


def tamper(path, change, shift=0):
    """Change a store through h5py and renew its header, as an attacker might."""
    with FeatureStore(path) as store:
        header = store.header
    with h5py.File(path, "r+") as file:
        change(file)
    descriptor = os.open(path, os.O_RDWR)
    write_header(descriptor, header.data_offset + shift, header.data_bytes)
    os.close(descriptor)


def set_array(name, place, value):
    def change(file):
        file[name][place] = value

    return change


def set_manifest(**fields):
    def change(file):
        file.attrs["manifest"] = json.dumps({**json.loads(file.attrs["manifest"]), **fields})

    return change


def replace_rows(kind, **options):
    def change(file):
        rows = file["features"][...].astype(kind)
        del file["features"]
        file.create_dataset("features", data=rows, **options)

    return change


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
        (set_manifest(dtype="float32"), "there are float16"),
        (set_manifest(resize="600"), "expected .short side, long side"),
        (set_manifest(resize=[32, 64]), "image 20 has 1×5 = 5 cells.* at most 1×2"),
        (set_manifest(extra=1), "extra.* are missing or unknown"),
        (replace_rows(np.float32), "float32, expected a 2-D array of float16"),
        (replace_rows(np.float16, compression="gzip"), "not stored in one contiguous piece"),
        (drop("width"), "lacks a part"),
        (drop("features"), "lacks a part"),
        (lambda file: file.attrs.__delitem__("manifest"), "lacks a part"),
    ],
)
def test_an_invalid_index_is_rejected_at_opening(sample, change, message):
    tamper(sample, change)
    with pytest.raises(ValueError, match=f"a.h5.*{message}"):
        FeatureStore(sample)


def test_an_index_of_regions_is_described_in_regions(tmp_path):
    write_npz(tmp_path / "npz", {3: 4, 9: 5})
    convert_regions(tmp_path / "npz", tmp_path / "a.h5")
    tamper(tmp_path / "a.h5", set_manifest(num_images=3))
    with pytest.raises(ValueError, match=r"\(images, regions, features\) = \(3, 9, 6\), the file"):
        FeatureStore(tmp_path / "a.h5")


def test_a_header_that_points_beside_the_rows_is_rejected(sample):
    tamper(sample, lambda file: None, shift=2)
    with pytest.raises(ValueError, match="not where the header says"):
        FeatureStore(sample)


def test_a_truncated_store_is_rejected_wherever_it_is_cut(sample, tmp_path):
    whole = sample.read_bytes()
    for length in [*range(0, len(whole), 997), len(whole) - 1]:
        (tmp_path / "cut.h5").write_bytes(whole[:length])
        what = r"cut\.h5 has \d+ bytes.*truncated" if length >= 4096 else r"cut\.h5"
        with pytest.raises(ValueError, match=what):
            FeatureStore(tmp_path / "cut.h5")


def test_a_changed_byte_outside_the_rows_is_rejected_before_hdf5_reads_it(sample, tmp_path):
    whole = bytearray(sample.read_bytes())
    with FeatureStore(sample) as store:
        rows = range(store.header.data_offset, store.header.data_offset + store.header.data_bytes)
    places = np.random.default_rng(0).integers(4096, len(whole), 200).tolist()
    for place in set(places) - set(rows):
        changed = whole.copy()
        changed[place] ^= 0xFF
        (tmp_path / "changed.h5").write_bytes(changed)
        with pytest.raises(ValueError, match="does not match its checksum"):
            FeatureStore(tmp_path / "changed.h5")


def test_foreign_files_are_rejected(tmp_path):
    with h5py.File(tmp_path / "foreign.h5", "w") as file:
        file["features"] = np.zeros((3, 4))
    (tmp_path / "text.h5").write_text("hello")
    (tmp_path / "empty.h5").touch()
    for name in ("foreign.h5", "text.h5", "empty.h5"):
        with pytest.raises(ValueError, match=f"{name} is not a feature store"):
            FeatureStore(tmp_path / name)
    with pytest.raises(FileNotFoundError, match=r"absent\.h5 does not exist"):
        FeatureStore(tmp_path / "absent.h5")
