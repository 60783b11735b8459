import numpy as np
import pytest
from PIL import Image

from data.extract import extract_patches, list_images, upright_size
from data.patch import NUM_FEATURES, describe
from data.store import FeatureStore


def draw(path, size, **options):
    generator = np.random.default_rng(len(path.name))
    pixels = generator.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path, **options)


@pytest.fixture
def folder(tmp_path):
    images = tmp_path / "images"
    images.mkdir()
    draw(images / "COCO_val2014_000000000042.jpg", (320, 240))
    draw(images / "7.png", (200, 300))
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    draw(images / "9.jpg", (400, 200), exif=exif)
    (images / "notes.txt").write_text("not an image")
    return images


def test_every_image_is_in_the_store_as_the_descriptor_sees_it(folder, tmp_path):
    output = tmp_path / "store.h5"
    assert extract_patches(folder, output) == 3
    with FeatureStore(output) as store:
        assert store.image_ids.tolist() == [7, 9, 42]
        assert store.manifest.backbone == "patch"
        for image_id, path in list_images(folder).items():
            expected = describe(Image.open(path))
            assert store.size(image_id) == expected.shape[:2]
            rows = expected.reshape(-1, NUM_FEATURES).astype(np.float16)
            np.testing.assert_array_equal(store.rows(image_id), rows)


def test_a_picture_turned_by_its_camera_has_its_sides_exchanged(folder):
    assert upright_size(folder / "9.jpg") == (200, 400)
    assert upright_size(folder / "7.png") == (200, 300)


def test_a_broken_image_is_named_and_nothing_is_left_at_the_output(folder, tmp_path):
    whole = (folder / "7.png").read_bytes()
    (folder / "8.png").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"8\.png is not a readable image"):
        extract_patches(folder, tmp_path / "store.h5")
    assert not (tmp_path / "store.h5").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [("cat.jpg", "is not named"), ("0042.png", "are the same image")],
)
def test_names_that_are_no_ids_are_refused(folder, name, message):
    draw(folder / name, (50, 50))
    with pytest.raises(ValueError, match=message):
        list_images(folder)


def test_a_folder_without_images_is_refused(tmp_path):
    with pytest.raises(ValueError, match="holds no"):
        extract_patches(tmp_path, tmp_path / "store.h5")
    with pytest.raises(FileNotFoundError, match="not a folder"):
        extract_patches(tmp_path / "absent", tmp_path / "store.h5")


def test_a_repaired_image_is_described_and_what_was_done_is_kept(folder, tmp_path):
    output = tmp_path / "store.h5"
    draw(folder / "80.jpg", (200, 300))
    whole = (folder / "80.jpg").read_bytes()
    (folder / "80.jpg").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"80\.jpg is not a readable image"):
        extract_patches(folder, output, num_threads=1)
    (folder / "80.jpg").write_bytes(whole)
    draw(folder / "7.png", (200, 300), compress_level=0)  # described already, and changed since
    assert extract_patches(folder, output) == 2
    with FeatureStore(output) as store:
        for image_id, path in list_images(folder).items():
            rows = describe(Image.open(path)).reshape(-1, NUM_FEATURES).astype(np.float16)
            np.testing.assert_array_equal(store.rows(image_id), rows)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["images", "store.h5"]


def test_an_id_too_large_is_named(folder):
    draw(folder / "99999999999999999999.png", (50, 50))
    with pytest.raises(ValueError, match=r"999\.png: an image id may be at most"):
        list_images(folder)
