"""timm's models as backbones, against timm's own features; every mistake in one sentence."""

import shutil

import numpy as np
import pytest
import torch
from PIL import Image

from data.backbones.registry import open_backbone
from data.features.manifest import check_grid
from data.features.reader import FeatureStore
from scripts import extract, verify_features
from tests.data.backbones.sample_pictures import draw
from tests.data.backbones.sample_timm import draw_state, prepare, save_file, save_weights, timm
from tests.small_models import listing, read_error, run_here

# name: stride, features, class and register tokens, options for one size, layout of the features
MODELS = {
    "test_vit": (16, 64, 1, "img_size", "NLC"),  # a class token
    "test_vit3": (16, 96, 1, "img_size", "NLC"),  # pooled by attention, as SigLIP
    "vit_small_patch14_reg4_dinov2": (14, 384, 5, "img_size", "NLC"),
    "vit_small_patch16_dinov3": (16, 384, 5, "", "NLC"),  # rotary positions
    "test_convnext": (32, 64, 0, "", "NCHW"),
    "swin_tiny_patch4_window7_224": (32, 768, 0, "strict_img_size", "NHWC"),
}


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """The file of a model's random weights, written once."""
    folder = tmp_path_factory.mktemp("weights")

    def save(name):
        path = folder / f"{name}.safetensors"
        return path if path.exists() else save_weights(path, name)

    return save


@pytest.mark.parametrize("name", MODELS)
def test_features_are_those_of_timms_own_forward_features(weights, name):
    stride, num_features, num_prefix, option, layout = MODELS[name]
    rows, columns = 4, 5  # 4×5.3 cells: the longer side is resized to whole ones
    backbone = open_backbone(f"timm:{name}", weights(name), resize=(rows * stride, 9 * stride))
    assert (backbone.stride, backbone.num_features) == (stride, num_features)
    image = draw(128, 96)
    options = {"img_size": (rows * stride, columns * stride), "strict_img_size": False}
    kept = {key: value for key, value in options.items() if key == option}
    own = timm.create_model(name, num_classes=0, **kept).eval()
    state = draw_state(name)
    timm_filter = timm.models.vision_transformer.checkpoint_filter_fn
    state = timm_filter(state, own) if option == "img_size" else state  # resampled positions
    own.load_state_dict({key: state[key] for key in own.state_dict()})
    with torch.inference_mode():
        pixels = prepare(own, image, (columns * stride, rows * stride))
        features = own.forward_features(pixels)
    expected = {
        "NLC": lambda: features[0, num_prefix:].reshape(rows, columns, num_features),
        "NCHW": lambda: features[0].permute(1, 2, 0),
        "NHWC": lambda: features[0],
    }[layout]()
    found = torch.from_numpy(backbone.describe(image))
    assert expected.std() > 0.05
    tolerance = {"rtol": 1e-3, "atol": 1e-3 * float(expected.std())}
    torch.testing.assert_close(found, expected, **tolerance)
    if layout == "NLC":  # timm's own way from tokens to a map
        with torch.inference_mode():
            (grid,) = own.forward_intermediates(
                pixels, indices=1, norm=True, output_fmt="NCHW", intermediates_only=True
            )
        torch.testing.assert_close(found, grid[0].permute(1, 2, 0), **tolerance)


@pytest.mark.parametrize("name", ["test_vit", "test_convnext", "vit_small_patch14_reg4_dinov2"])
def test_images_keep_their_aspect_and_have_at_most_608_cells(weights, name):
    backbone = open_backbone(f"timm:{name}", weights(name))
    stride = backbone.stride
    assert backbone.resize == (19 * stride, 32 * stride)
    for width in (1, 13, 64, 200, 333, 480, 640, 1001, 5000):
        for height in (1, 17, 100, 427, 480, 640, 2500):
            rows, columns = backbone.choose_grid(width, height)
            assert rows * columns <= 608
            check_grid(0, rows, columns, backbone.resize, stride)
            assert backbone.choose_pixels(width, height) == (rows * stride, columns * stride)
            # half a cell of rounding per side, the exact side apart
            scale = min(19 / min(width, height), 32 / max(width, height))
            assert abs(rows - scale * height) <= max(0.54, 1 - scale * height)
            assert abs(columns - scale * width) <= max(0.54, 1 - scale * width)


@pytest.fixture
def folder(tmp_path):
    images = tmp_path / "images"
    images.mkdir()
    draw(128, 96).save(images / "7.png")
    draw(60, 100, seed=1).save(images / "COCO_val2014_000000000042.jpg")
    draw(128, 96, seed=2).convert("L").save(images / "9.png")
    return images


def words(folder, output, name, *more):
    settings = [f"images={folder}", f"output={output}", f"backbone=timm:{name}", "device=cpu"]
    return [*settings, *more]


def test_a_store_says_how_its_features_were_made(folder, tmp_path, weights):
    output = tmp_path / "store.h5"
    given = words(folder, output, "test_vit", f"weights={weights('test_vit')}")
    code, printed, error = run_here(extract.main, *given, quiet=[])
    assert code == 0, error
    assert "3 images (3 described now), 1558 cells of 64 features" in printed
    backbone = open_backbone("timm:test_vit", weights("test_vit"))
    with FeatureStore(output) as store:
        manifest = store.manifest
        assert manifest.backbone == backbone.name == "timm:test_vit.r160_in1k"
        assert (manifest.stride, manifest.resize, manifest.max_cells) == (16, (304, 512), 608)
        assert manifest.source.endswith(f", weights {backbone.weights}")
        assert store.size(7) == (19, 25)
        assert store.size(42) == (32, 19)
        expected = backbone.describe(Image.open(folder / "7.png")).reshape(-1, 64)
        np.testing.assert_allclose(store.rows(7), expected, rtol=2e-3, atol=2e-3)
    code, printed, _ = run_here(verify_features.main, f"store={output}", quiet=[])
    assert code == 0
    assert "timm:test_vit.r160_in1k, resize 304/512, 64 features per cell" in printed
    assert "16×16 pixels, at most 608 per image" in printed
    # the name in the manifest opens the same backbone again
    again = open_backbone(manifest.backbone, weights("test_vit"), resize=manifest.resize)
    assert (again.name, again.weights) == (backbone.name, backbone.weights)


def test_weights_of_every_kind_of_file_are_the_same(tmp_path, weights):
    backbone = open_backbone("timm:test_vit", weights("test_vit"))
    state = draw_state("test_vit")
    files = {
        "plain.bin": state,
        "parallel.pth": {"state_dict": {f"module.{key}": state[key] for key in state}, "epoch": 3},
        "averaged.pth": {"state_dict": {}, "state_dict_ema": state},
        "features.pt": {"model": {key: state[key] for key in state if "head" not in key}},
    }
    for name, content in files.items():
        torch.save(content, tmp_path / name)
        assert open_backbone("timm:test_vit", tmp_path / name).weights == backbone.weights
    other = save_weights(tmp_path / "other.safetensors", "test_vit", seed=1)
    assert open_backbone("timm:test_vit", other).weights != backbone.weights


def test_dinov2_as_it_was_published_is_read_as_timm_reads_it(tmp_path):
    name, image = "vit_small_patch14_reg4_dinov2", draw(70, 56)
    state = dict(draw_state(name, num_classes=0))
    state["register_tokens"] = state.pop("reg_token")
    state["mask_token"] = torch.zeros(1, 384)
    state["pos_embed"] = torch.cat([torch.randn(1, 1, 384), state["pos_embed"]], dim=1)
    torch.save(state, tmp_path / "dinov2.pth")
    backbone = open_backbone(f"timm:{name}", tmp_path / "dinov2.pth", resize=(56, 112))
    own = timm.create_model(
        name, True, pretrained_cfg_overlay={"file": str(tmp_path / "dinov2.pth")}, img_size=(56, 70)
    )
    with torch.inference_mode():
        expected = own.eval().forward_features(prepare(own, image, (70, 56)))[0, 5:]
    found = torch.from_numpy(backbone.describe(image)).reshape(20, 384)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3 * float(expected.std()))


def test_weights_of_the_hub_are_taken_from_its_cache(tmp_path, monkeypatch, weights):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    commit, repository = "0" * 40, tmp_path / "models--timm--test_vit.r160_in1k"
    for folder in ("refs", f"snapshots/{commit}"):
        (repository / folder).mkdir(parents=True)
    (repository / "refs" / "main").write_text(commit)
    shutil.copy(weights("test_vit"), repository / "snapshots" / commit / "model.safetensors")
    found = open_backbone("timm:test_vit")
    expected = open_backbone("timm:test_vit", weights("test_vit"))
    assert (found.name, found.weights) == (expected.name, expected.weights)
    image = draw(96, 64)
    np.testing.assert_array_equal(found.describe(image), expected.describe(image))


def damage(state, key, value=None):
    """The weights without one of them, or with another one in its place."""
    state = {name: tensor for name, tensor in state.items() if name != key}
    return state if value is None else {**state, key: value}


def write_bad_files(folder):
    """Files of weights, each with what is wrong about it."""
    state = draw_state("test_vit")
    whole = save_weights(folder / "whole.safetensors", "test_vit")
    (folder / "cut.safetensors").write_bytes(whole.read_bytes()[:5000])
    (folder / "text.safetensors").write_text("<html>not found</html>")
    (folder / "text.pth").write_text("<html>not found</html>")
    save_weights(folder / "other.safetensors", "test_vit2")
    save_weights(folder / "network.safetensors", "test_convnext")
    save_file(damage(state, "norm.bias"), folder / "short.safetensors")
    torch.save(damage(state, "norm.bias", torch.zeros(9)), folder / "shape.bin")
    torch.save(damage(state, "norm.bias", torch.full((64,), torch.nan)), folder / "nan.bin")
    torch.save([1, 2], folder / "list.bin")


@pytest.fixture(scope="module")
def bad_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bad")
    write_bad_files(folder)
    return folder


BAD_FILES = {
    "absent.bin": "does not exist; expected a checkpoint of timm:test_vit",
    ".": "cannot be read as a checkpoint",
    "cut.safetensors": "cannot be read as a checkpoint",
    "text.safetensors": "cannot be read as a checkpoint",
    "text.pth": "cannot be read as a checkpoint",
    "other.safetensors": "is not a checkpoint of timm:test_vit: ",
    "network.safetensors": "is not a checkpoint of timm:test_vit: ",
    "short.safetensors": "1 key is missing, such as norm.bias",
    "shape.bin": "norm.bias has the shape [9]",
    "nan.bin": "norm.bias is NaN or infinite",
    "list.bin": "keys are missing",
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_weights_that_do_not_fit_are_named_and_nothing_is_written(
    folder, tmp_path, bad_files, name
):
    output = tmp_path / "new" / "store.h5"
    given = words(folder, output, "test_vit", f"weights={bad_files / name}")
    error = read_error(extract.main, *given, quiet=[])
    assert str(bad_files / name) in error
    assert BAD_FILES[name] in error
    assert not output.parent.exists()


@pytest.mark.parametrize(
    ("name", "more", "problem"),
    [
        ("vit_smal_patch14_dinov2", "", "near are timm:vit_small_patch14_dinov2, "),
        ("zzz", "", "there is no timm model 'zzz'; see https"),
        ("test_vit.mine", "", "no weights tagged 'mine'; near are timm:test_vit.r160_in1k"),
        ("mixer_s32_224", "", "takes images of 224×224 pixels alone"),
        ("test_maxvit", "", "takes images of 160×160 pixels alone"),
        ("crossvit_9_240", "", "has no grid of features"),
        ("test_vit", "resize=[600,1000]", "16 pixels: pass multiples of it, such as resize=[608,"),
        ("test_vit", "resize=[512,304]", "its short side is the longer one"),
        ("test_vit", "", "the weights of timm:test_vit are not here and could not be downloaded"),
        ("test_mambaout", "", "No pretrained weights exist for test_mambaout"),
    ],
)
def test_a_model_that_cannot_be_had_is_a_mistake(
    folder, tmp_path, monkeypatch, name, more, problem
):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    before = listing(tmp_path)
    given = words(folder, tmp_path / "store.h5", name, *more.split())
    assert problem in read_error(extract.main, *given, quiet=[])
    assert listing(tmp_path) == before


def test_without_timm_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("data.backbones.timm_model.importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"test_vit needs timm: \.venv/bin/pip install .*\[timm\]"):
        open_backbone("timm:test_vit")


def test_a_store_that_does_not_say_its_resize_cannot_be_matched(weights):
    with pytest.raises(ValueError, match="timm:test_vit needs a resize of"):
        open_backbone("timm:test_vit", weights("test_vit"), resize=None)
