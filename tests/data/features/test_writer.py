import math

import numpy as np
import pytest
import torch

from data.features.manifest import check_grid
from data.features.reader import FeatureStore
from tests.data.features.sample_features import draw_rows, open_writer, write_sample


def write_rows(path, rows):
    with open_writer(path) as writer:
        for image_id, array in rows.items():
            writer.write(image_id, array)


def test_equal_contents_give_equal_bytes(tmp_path):
    write_sample(tmp_path / "a.h5")
    write_sample(tmp_path / "b.h5")
    write_sample(tmp_path / "c.h5", seed=1)
    contents = [(tmp_path / f"{name}.h5").read_bytes() for name in "abc"]
    assert contents[0] == contents[1] != contents[2]


def test_rows_of_float32_tensors_are_rounded_to_float16(tmp_path):
    rows = torch.randn(6, 5)
    with open_writer(tmp_path / "a.h5", {1: (2, 3)}) as writer:
        writer.write(1, rows.t().contiguous().t())  # as after a transpose
    with FeatureStore(tmp_path / "a.h5") as store:
        np.testing.assert_array_equal(store.rows(1), rows.numpy().astype(np.float16))


@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, "image 7 has features that are NaN"), (1e5, r"image 7 has a feature of 1e\+05")],
)
def test_numbers_that_float16_cannot_hold_are_rejected_and_nothing_is_left(
    tmp_path, value, message
):
    rows = {image_id: array.astype(np.float32) for image_id, array in draw_rows().items()}
    rows[7][2, 1] = value
    with pytest.raises(ValueError, match=message):
        write_rows(tmp_path / "a.h5", rows)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({30: None}, "1 images were not written, as 30"),
        ({8: np.zeros((6, 5))}, "image 8 is not one of"),
        ({7: np.zeros((5, 5))}, r"image 7 has rows of shape \(5, 5\), expected \(6, 5\)"),
    ],
)
def test_a_store_with_other_images_or_rows_is_not_finished(tmp_path, changes, message):
    rows = {n: array for n, array in {**draw_rows(), **changes}.items() if array is not None}
    with pytest.raises(ValueError, match=message):
        write_rows(tmp_path / "a.h5", rows)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_store_is_replaced_only_by_force(sample):
    with pytest.raises(FileExistsError, match="exists already"):
        write_sample(sample)
    write_sample(sample, {1: (1, 1)}, force=True)
    with FeatureStore(sample) as store:
        assert store.image_ids.tolist() == [1]


def test_two_writers_of_one_store_do_not_mix(tmp_path):
    with open_writer(tmp_path / "a.h5", {1: (1, 1)}) as writer:
        with pytest.raises(ValueError, match="held by another process"):
            open_writer(tmp_path / "a.h5", {1: (1, 1)})
        writer.write(1, np.ones((1, 5)))


@pytest.mark.parametrize(
    ("height", "width", "resize"),
    [(19, 32, (600, 1000)), (19, 19, (600, 1000)), (5, 32, (600, 1000)), (12, 16, (384, 640))],
)
def test_grids_with_the_short_or_the_long_side_of_the_resize_are_accepted(height, width, resize):
    check_grid(5, height, width, resize)
    check_grid(5, width, height, resize)


@pytest.mark.parametrize(
    ("height", "width"), [(20, 32), (4, 152), (12, 16), (18, 31), (1, 1), (7, 20)]
)
def test_grids_larger_or_smaller_than_the_resize_makes_them_are_rejected(tmp_path, height, width):
    message = (
        rf"image 5 has {height}×{width} = {height * width} cells.* at most 19×32 = 608, "
        "and 19 cells on the short side or 32 on the long one.*resize="
    )
    with pytest.raises(ValueError, match=message):
        open_writer(tmp_path / "a.h5", {4: (19, 32), 5: (height, width)}, resize=(600, 1000))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("short", range(200, 900, 37))
def test_every_image_resized_as_detectron_does_has_a_grid_that_is_accepted(short):
    long = short * 5 // 3
    for height in range(50, 900, 53):
        for width in range(50, 900, 47):
            scale = short / min(height, width)
            if scale * max(height, width) > long:
                scale = long / max(height, width)
            pixels = [int(side * scale + 0.5) for side in (height, width)]
            check_grid(1, *(math.ceil(side / 32) for side in pixels), (short, long))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backbone": 101}, "backbone is 101, expected text"),
        ({"backbone": None}, "backbone is None, expected text"),
        ({"backbone": ["a", "b"]}, "backbone is .*, expected text"),
        ({"source": 5}, "source is 5, expected text"),
        ({"resize": (1000, 600)}, r"resize is \[1000, 600\], but its short side"),
    ],
)
def test_settings_that_make_no_sense_are_rejected_before_anything_is_written(
    tmp_path, options, message
):
    with pytest.raises(ValueError, match=message):
        open_writer(tmp_path / "a.h5", **options)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_a_file_is_named(tmp_path):
    (tmp_path / "file").write_text("hello")
    with pytest.raises(NotADirectoryError, match=r"a\.h5 cannot be written: .*file is a file"):
        open_writer(tmp_path / "file" / "b" / "a.h5")
