import json

import h5py
import numpy as np
import pytest
import torch
from PIL import Image

from data.backbones.extract import describe_batches, extract_features, list_images, plan_batches
from data.backbones.network import Network
from data.backbones.registry import open_backbone
from data.features.dtype import DTYPES
from data.features.from_pth import convert_folder
from data.features.reader import FeatureStore
from data.features.store_set import open_stores
from data.io.images import read_image, upright_size
from scripts import extract, verify_features
from tests.data.backbones.sample_networks import LAYOUTS, SMALL, draw_state, save_checkpoint
from tests.data.backbones.sample_pictures import draw, turned
from tests.data.features.killed_build import kill_when_stored
from tests.data.features.sample_features import open_writer
from tests.small_models import run_here


def save(path, size, **options):
    draw(*size, seed=len(path.name)).save(path, **options)


@pytest.fixture
def folder(tmp_path):
    images = tmp_path / "images"
    images.mkdir()
    save(images / "COCO_val2014_000000000042.jpg", (320, 240))
    save(images / "7.png", (200, 300))
    save(images / "9.jpg", (400, 200), exif=turned(6))  # by a quarter
    (images / "notes.txt").write_text("not an image")
    return images


def extract_patches(folder, output, **options):
    return extract_features(folder, output, open_backbone("patch"), **options)


def assert_described(output, folder, backbone, **tolerance):
    """Every image is in the store as the backbone sees it alone, but for the last bits."""
    with FeatureStore(output) as store:
        files = list_images(folder)
        assert store.image_ids.tolist() == list(files)
        for image_id, path in files.items():
            expected = backbone.describe(Image.open(path))
            assert store.size(image_id) == expected.shape[:2]
            rows = expected.reshape(-1, backbone.num_features).astype(np.float16)
            tolerance = tolerance or {"rtol": 2e-3, "atol": 1e-3}
            np.testing.assert_allclose(store.rows(image_id), rows, **tolerance)


def test_every_image_is_in_the_store_as_the_descriptor_sees_it(folder, tmp_path):
    output = tmp_path / "store.h5"
    assert extract_patches(folder, output) == 3
    assert_described(output, folder, open_backbone("patch"), rtol=0)
    with FeatureStore(output) as store:
        assert store.image_ids.tolist() == [7, 9, 42]
        assert store.manifest.backbone == "patch"


def test_a_network_fills_a_store_with_images_of_all_kinds(folder, tmp_path, r50):
    save(folder / "10.jpg", (320, 240), quality=50)
    modes = {"11.jpg": "L", "12.png": "P", "13.jpg": "CMYK", "14.png": "RGBA"}
    for name, mode in modes.items():
        Image.open(folder / "10.jpg").convert(mode).save(folder / name)
    output = tmp_path / "store.h5"
    assert extract_features(folder, output, r50) == 8
    assert_described(output, folder, r50)
    with FeatureStore(output) as store:
        manifest = store.manifest
        assert (manifest.backbone, manifest.resize, manifest.num_features) == ("R-50", SMALL, 2048)
        assert manifest.source.endswith(f"(8 files), weights {r50.weights}")
        assert store.size(9) == (4, 2)  # upright
    assert sorted(path.name for path in tmp_path.iterdir()) == ["images", "store.h5"]


def test_an_extracted_and_a_converted_store_are_read_as_one(folder, tmp_path, r50):
    extract_features(folder, tmp_path / "extracted.h5", r50)
    (tmp_path / "pth").mkdir()
    torch.save(torch.ones(1, 2048, 2, 3), tmp_path / "pth" / "1000.pth")
    convert_folder(tmp_path / "pth", tmp_path / "converted.h5", backbone="r50", resize=SMALL)
    stores = open_stores([tmp_path / "extracted.h5", tmp_path / "converted.h5"])
    assert stores.image_ids.tolist() == [7, 9, 42, 1000]
    stores.close()


def test_batches_hold_images_of_one_size_and_every_image_once(r50):
    sizes = [(640, 480), (480, 640), (320, 240), (641, 480), (640, 480), (64, 48), (1280, 960)]
    batches = plan_batches(r50, dict(enumerate(sizes)), list(range(7)), batch_size=3)
    assert sorted(n for batch in batches for n in batch) == list(range(7))
    assert sorted(map(len, batches)) == [1, 3, 3]  # 641×480 becomes 85×64 like the others
    for batch in batches:
        assert len({r50.choose_pixels(*sizes[n]) for n in batch}) == 1


def test_features_do_not_depend_on_the_other_images_of_a_batch(tmp_path, r50):
    for image_id in range(5):
        save(tmp_path / f"{'0' * image_id}{image_id}.png", (128, 96))  # its name's length: its seed
    files = list_images(tmp_path)
    stored = []
    for number, batches in enumerate([[[0, 1, 2], [3, 4]], [[4], [2, 0], [3, 1]]]):
        path = tmp_path / f"{number}.h5"
        with open_writer(path, dict.fromkeys(files, (2, 3)), 2048) as writer:
            assert len(list(describe_batches(r50, files, batches, 3, writer, 1))) == 5
        stored.append(path.read_bytes())
    assert stored[0] == stored[1]
    assert_described(tmp_path / "0.h5", tmp_path, r50)


PROGRAM = """
import sys, time
import torch
from data.backbones.registry import open_backbone
from data.backbones.extract import extract_features
torch.set_num_threads(1)
output, folder, weights = sys.argv[1:]
backbone = open_backbone("r50", weights, resize=(64, 107))
describe, count = backbone.describe_pixels, 0
def slow(pixels):
    global count
    count += 1
    if count > 2:  # two batches, then stand still until killed
        time.sleep(300)
    return describe(pixels)
backbone.describe_pixels = slow
extract_features(folder, output, backbone, num_threads=1, commit_bytes=1)
"""


def test_a_killed_extraction_goes_on_without_redoing_what_is_done(folder, tmp_path, r50_file, r50):
    output = tmp_path / "store.h5"
    save(folder / "8.png", (200, 300))
    kill_when_stored(PROGRAM, output, 2, folder, r50_file)
    assert extract_features(folder, output, r50) == 4 - 2
    assert_described(output, folder, r50)
    extract_features(folder, tmp_path / "again.h5", r50)
    assert output.read_bytes() == (tmp_path / "again.h5").read_bytes()


@pytest.fixture
def lose_image(monkeypatch):
    """lose_image("9.jpg") has this file go bad after it was checked, lose_image(None) none."""
    lost = [None]

    def read(path):
        if path.name == lost[0]:
            raise ValueError(f"{path} is not a readable image: lost")
        return read_image(path)

    monkeypatch.setattr("data.backbones.extract.read_image", read)
    return lambda name: lost.__setitem__(0, name)


def test_a_store_begun_with_other_weights_or_sizes_is_not_continued(
    folder, tmp_path, r50_file, r50, lose_image
):
    output = tmp_path / "store.h5"
    lose_image("9.jpg")
    with pytest.raises(ValueError, match=r"9\.jpg is not a readable image"):
        extract_features(folder, output, r50)
    assert not output.exists()
    lose_image(None)
    other_file = save_checkpoint(tmp_path / "other.pth", draw_state(LAYOUTS["r50"], seed=1))
    grids = r"resize \[.*\], not \[80, 120\] and other grids"
    others = {
        "source": open_backbone("r50", other_file, resize=SMALL),
        grids: open_backbone("r50", r50_file, resize=(80, 120)),
        ".*backbone R-50, not patch.* stride 32, not 24": open_backbone("patch"),
    }
    for changed, other in others.items():
        expected = rf"store\.h5\.partial was begun with {changed}.*delete it and .*h5\.journal$"
        with pytest.raises(ValueError, match=expected):
            extract_features(folder, output, other)
    assert extract_features(folder, output, r50) >= 1
    assert_described(output, folder, r50)


def test_a_backbone_that_rounds_its_grid_down_is_named(folder, tmp_path):
    options = {"num_features": 3, "stride": 16, "mean": [0.0] * 3, "std": [255.0] * 3}
    tiny = Network("tiny", torch.nn.AvgPool2d(16), resize=(72, 200), **options)
    # images are decoded by threads: which comes first is not known, but all have 4.5 cells
    expected = r"\.(jpg|png): backbone tiny returned .*\b4×.* promise .*\b5×.*; .* 16 pixels"
    with pytest.raises(ValueError, match=expected):
        extract_features(folder, tmp_path / "store.h5", tiny)


def test_a_batch_needs_an_image(folder, tmp_path):
    with pytest.raises(ValueError, match="batch_size is 0, expected at least 1"):
        extract_patches(folder, tmp_path / "store.h5", batch_size=0)


def test_a_picture_turned_by_its_camera_has_its_sides_exchanged(folder):
    assert upright_size(folder / "9.jpg") == (200, 400)
    assert upright_size(folder / "7.png") == (200, 300)
    save(folder / "6.jpg", (400, 200), exif=turned(3))  # upside down
    save(folder / "5.jpg", (400, 200), exif=turned(9))  # no orientation there is
    assert upright_size(folder / "6.jpg") == upright_size(folder / "5.jpg") == (400, 200)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cat.jpg", "is not named"),
        ("0042.png", "are the same image"),
        ("99999999999999999999.png", r"999\.png: an image id may be at most"),
    ],
)
def test_names_that_are_not_ids_are_rejected(folder, name, message):
    save(folder / name, (50, 50))
    with pytest.raises(ValueError, match=message):
        list_images(folder)


def test_a_folder_without_images_is_rejected(tmp_path):
    with pytest.raises(ValueError, match="holds no"):
        extract_patches(tmp_path, tmp_path / "store.h5")
    with pytest.raises(FileNotFoundError, match="absent is not a folder; expected"):
        extract_patches(tmp_path / "absent", tmp_path / "store.h5")


def cut(path):
    """Leave the first half of a file."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def test_all_broken_images_are_named_before_any_is_described(folder, tmp_path):
    output = tmp_path / "features" / "store.h5"
    save(folder / "80.jpg", (200, 300))
    cut(folder / "80.jpg")
    expected = (
        r"^[^;]*/80\.jpg is not a readable image: .*truncated.*; replace it, or remove it and"
    )
    with pytest.raises(ValueError, match=expected):
        extract_patches(folder, output)
    cut(folder / "7.png")
    (folder / "6.jpg").write_text("no image")
    expected = (
        r"^3 images .*6\.jpg .* its format is unknown; .*/7\.png .*/80\.jpg .*remove them and"
    )
    with pytest.raises(ValueError, match=expected):
        extract_patches(folder, output)
    assert not output.parent.exists()  # a removed image is no other store than one that was begun
    for number in range(100, 110):
        (folder / f"{number}.jpg").touch()
    with pytest.raises(ValueError, match=r"^13 images (?s:.)*; and 8 more; replace"):
        extract_patches(folder, output)


def test_an_image_repaired_later_is_described_and_what_was_done_is_kept(
    folder, tmp_path, lose_image
):
    output = tmp_path / "store.h5"
    save(folder / "80.jpg", (200, 300))
    lose_image("80.jpg")
    with pytest.raises(ValueError, match=r"80\.jpg is not a readable image"):
        extract_patches(folder, output, num_threads=1)
    assert not output.exists()
    lose_image(None)
    save(folder / "7.png", (200, 300), compress_level=0)  # described already, and changed since
    assert extract_patches(folder, output) == 2
    assert_described(output, folder, open_backbone("patch"), rtol=0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["images", "store.h5"]


def test_the_command_describes_a_folder_with_the_settings_it_is_given(folder, tmp_path, r50_file):
    words = [f"images={folder}", f"output={tmp_path}/store.h5", f"weights={r50_file}"]
    words += ["backbone=r50", "resize=[64,107]", "device=cpu"]
    code, printed, error = run_here(extract.main, *words, quiet=[])
    assert code == 0, error
    assert "3 images (3 described now), 20 cells of 2048 features" in printed
    with FeatureStore(tmp_path / "store.h5") as store:
        assert (store.manifest.backbone, store.manifest.resize) == ("R-50", SMALL)


OWN_BACKBONE = """
import numpy as np
import torch
from data.backbones.network import Network
from data.backbones.registry import register_backbone
from data.features.dtype import register_dtype

register_dtype("float32", torch.float32)


@register_backbone("mine")
class Mine(Network):
    def __init__(self, weights, device, resize):
        pooling = torch.nn.AvgPool2d(16, ceil_mode=True, count_include_pad=False)
        options = {"num_features": 3, "stride": 16, "mean": [0.0] * 3, "std": [255.0] * 3}
        super().__init__("mine", pooling, device=device, resize=(64, 128), **options)


@register_backbone("size")
class Size:
    name, num_features, stride, weights, resize = "size", 2, 1, "", None

    def __init__(self, weights, device, resize):
        pass

    def choose_grid(self, width, height):
        return 2, 1

    def describe(self, image):
        return np.broadcast_to(np.float32(image.size), (2, 1, 2))
"""


@pytest.mark.parametrize(
    ("name", "stride", "grids"),
    [("mine", 16, [(6, 4), (8, 4), (4, 6)]), ("size", 1, [(2, 1), (2, 1), (2, 1)])],
)
def test_a_backbone_of_ones_own_has_its_own_stride_and_resize(
    folder, tmp_path, monkeypatch, name, stride, grids
):
    (tmp_path / "backbones_of_mine.py").write_text(OWN_BACKBONE)
    monkeypatch.syspath_prepend(tmp_path)
    output = tmp_path / "store.h5"
    words = [f"images={folder}", f"output={output}", f"backbone={name}", "dtype=float32"]
    code, _, error = run_here(extract.main, *words, "modules=[backbones_of_mine]", quiet=[])
    assert code == 0, error
    code, _, error = run_here(verify_features.main, f"store={output}", quiet=[])
    assert code == 0, error
    with h5py.File(output) as file:
        assert file["features"].dtype == np.float32
        found = zip(file["height"][...].tolist(), file["width"][...].tolist(), strict=True)
        assert list(found) == grids
        assert json.loads(file.attrs["manifest"]).get("stride") == stride
    del DTYPES.values["float32"]  # as in a process without modules=[…]
    code, _, error = run_here(verify_features.main, f"store={output}", quiet=[])
    assert code == 2
    assert "there is no dtype of feature stores 'float32'" in error
