import numpy as np
import pytest

from data.features.store_set import open_stores
from tests.data.features.sample_features import SIZES, draw_rows, write_sample


def copy_rows(stores, image_id, like):
    out = np.empty_like(like)
    stores.copy_rows(int(stores.positions(np.array([image_id]))[0]), out)
    return out


def test_two_stores_read_as_one(sample, tmp_path):
    more = {5: (2, 2), 25: (1, 3)}
    rows = draw_rows() | write_sample(tmp_path / "b.h5", more, seed=1)
    stores = open_stores([sample, tmp_path / "b.h5"])
    assert stores.image_ids.tolist() == sorted(SIZES | more)
    for image_id, expected in rows.items():
        assert stores.shapes(np.array([image_id])).tolist() == [list((SIZES | more)[image_id])]
        np.testing.assert_array_equal(copy_rows(stores, image_id, expected), expected)


def test_missing_images_are_counted_and_named(sample):
    stores = open_stores([sample])
    with pytest.raises(ValueError, match=r"2 images are not in .*a.h5, the first is 8"):
        stores.positions(np.array([3, 99, 8, 8]))


def test_stores_of_different_kinds_are_not_mixed(sample, tmp_path):
    write_sample(tmp_path / "b.h5", {1: (2, 2)}, num_features=6)
    write_sample(tmp_path / "c.h5", {1: (1, 1)}, backbone="R-50")
    for names, message in [
        ("ab", r"b.h5 .*num_features 6, but num_features 5"),
        ("ac", r"c.h5 .*backbone R-50, but backbone patch"),
        ("", "at least one"),
    ]:
        with pytest.raises(ValueError, match=message):
            open_stores([tmp_path / f"{name}.h5" for name in names])


def test_an_image_in_two_stores_must_be_the_same(tmp_path):
    rows = write_sample(tmp_path / "a.h5", {1: (2, 2)})
    write_sample(tmp_path / "same.h5", {1: (2, 2)})
    write_sample(tmp_path / "other.h5", {1: (2, 2)}, seed=1)
    stores = open_stores([tmp_path / "a.h5", tmp_path / "same.h5"])
    np.testing.assert_array_equal(copy_rows(stores, 1, rows[1]), rows[1])
    with pytest.raises(ValueError, match="image 1 has different features in"):
        open_stores([tmp_path / "a.h5", tmp_path / "other.h5"])


def test_check_looks_at_every_file(sample, tmp_path):
    write_sample(tmp_path / "b.h5", {1: (2, 2)})
    stores = open_stores([sample, tmp_path / "b.h5"])
    stores.check()
    with open(tmp_path / "b.h5", "ab") as file:
        file.write(b"x")
    with pytest.raises(ValueError, match=r"b\.h5 was changed while in use"):
        stores.check()


def test_stores_exceed_memory_when_they_do_not_fit_into_half_of_what_may_be_used(
    sample, monkeypatch
):
    stores = open_stores([sample])
    num_bytes = sample.stat().st_size
    for usable, exceeds in ((2 * num_bytes, False), (2 * num_bytes - 2, True)):
        monkeypatch.setattr("data.features.store_set.usable_memory", lambda usable=usable: usable)
        assert stores.exceeds_memory() == exceeds
