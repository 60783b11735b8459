"""Texts in a store's metadata whose lengths are wrong, under a checksum that fits them."""

import pytest

from data.features.hdf5_heap import OBJECT, SIGNATURE, SIZES
from data.features.reader import FeatureStore
from tests.data.features.sample_features import write_sample
from tests.faults.damaged_stores import update_checksum


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("length", [0, 1, 5000, 2**63, 2**64 - 16, 2**64 - 1])
def test_a_wrong_length_is_rejected_before_hdf5_walks_along_it(tmp_path, free, length):
    """HDF5 itself never returned from some of them."""
    path = tmp_path / "x.h5"
    write_sample(path)
    with FeatureStore(path) as store:
        header = store.header
    content = bytearray(path.read_bytes())
    place = content.index(SIGNATURE) + SIZES.size
    if free:
        number, size = OBJECT.unpack_from(content, place)
        assert number == 1
        place += OBJECT.size + -(-size // 8) * 8
    number, _ = OBJECT.unpack_from(content, place)
    OBJECT.pack_into(content, place, number, length)
    path.write_bytes(content)
    update_checksum(path, header)
    with pytest.raises(ValueError, match=rf"^{path}"):
        FeatureStore(path)


@pytest.mark.parametrize("size", [1 << 20, 2**63, 2**64 - 1])
def test_texts_that_end_behind_the_file_are_rejected(tmp_path, size):
    path = tmp_path / "x.h5"
    write_sample(path)
    with FeatureStore(path) as store:
        header = store.header
    content = bytearray(path.read_bytes())
    place = content.index(SIGNATURE)
    content[place + 8 : place + 16] = size.to_bytes(8, "little")
    path.write_bytes(content)
    update_checksum(path, header)
    with pytest.raises(ValueError, match="end behind the file"):
        FeatureStore(path)
