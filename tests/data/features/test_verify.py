import numpy as np
import pytest

from data.features.reader import FeatureStore
from data.features.verify import verify_store
from tests.data.features.sample_features import SIZES
from tests.data.vqa.official_files import make_question, write_questions


def ask_about(tmp_path, *image_ids):
    questions = [make_question(n, image_id=image_id) for n, image_id in enumerate(image_ids)]
    return [write_questions(tmp_path / "q.json", questions)]


def overwrite(path, image_id, content):
    """Change an image's first numbers, not its checksum."""
    with FeatureStore(path) as store:
        start = int(store.offsets[store.position(image_id)]) * store.num_features * 2
        offset = store.header.data_offset + start
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(content.tobytes())


def test_a_valid_store_is_reported_with_its_grids(sample, tmp_path):
    report = verify_store(sample, ask_about(tmp_path, 3, 3, 7, 30), backbone="patch")
    assert report.num_questions == 4
    assert report.shapes == {(2, 3): 3, (1, 5): 1, (3, 2): 1, (4, 4): 1}
    assert report.manifest.num_images == len(SIZES)
    assert report.num_bytes == sample.stat().st_size


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_image_with_a_number_that_is_not_finite_is_named(sample, value):
    overwrite(sample, 12, np.array([1, value], dtype=np.float16))
    with pytest.raises(ValueError, match=r"1 images hold NaN or infinite features: 12 \(row 0\);"):
        verify_store(sample)


def test_images_whose_rows_were_changed_are_named(sample):
    for image_id in (30, 3):
        overwrite(sample, image_id, np.array([8], dtype=np.float16))
    with pytest.raises(ValueError, match=r"2 images do not match their checksum: 3, 30;"):
        verify_store(sample)


def test_questions_about_images_that_are_not_there_are_rejected(sample, tmp_path):
    with pytest.raises(ValueError, match=r"a.h5 lacks 2 images of the questions.*: 98, 99"):
        verify_store(sample, ask_about(tmp_path, 3, 99, 98, 99))


@pytest.mark.parametrize("resize", [600, "abc", [600], [1000, 600]])
def test_a_resize_that_makes_no_sense_is_rejected(sample, resize):
    with pytest.raises(ValueError, match="resize is "):
        verify_store(sample, resize=resize)
