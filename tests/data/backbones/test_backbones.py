import dataclasses
import io
import math
import socket

import numpy as np
import pytest
import torch
from PIL import Image

from data.backbones.network import choose_size
from data.backbones.patch.descriptor import NUM_FEATURES, describe
from data.backbones.registry import make_network, open_backbone
from data.backbones.resnet import (
    ARCHITECTURES,
    build_layers,
    import_models,
    list_shapes,
    load_weights,
    official_name,
)
from data.backbones.weights import fetch_weights, file_key, hash_weights
from data.io.images import read_image
from tests.data.backbones.sample_networks import (
    LAYOUTS,
    SMALL,
    blank_state,
    draw_state,
    list_keys,
    run_plainly,
    save_checkpoint,
)
from tests.data.backbones.sample_pictures import draw, turned
from tests.data.vqa.official_files import real_folder

MEAN = torch.tensor([103.530, 116.280, 123.675])  # blue, green, red
STD = {"x101": torch.tensor([57.375, 57.120, 58.395]), "x152": 1.0}


def describe_plainly(layout, state, image, size, std=1.0):
    """Features (h, w, F) by the plain forward, from an upright RGB picture and its new size."""
    pixels = np.asarray(image.resize(size, Image.Resampling.BILINEAR)).astype(np.float32)
    blue_first = torch.from_numpy(pixels[:, :, ::-1].copy())  # (H, W, 3)
    normalised = ((blue_first - MEAN) / std).permute(2, 0, 1)[None]
    return run_plainly(layout, state, normalised)[0].permute(1, 2, 0).numpy()


def assert_close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 * np.abs(expected).max())


@pytest.mark.parametrize(("width", "height"), [(128, 96), (90, 200), (300, 80)])
def test_r50_equals_a_plain_forward_of_detectron2s_layout(r50, r50_state, width, height):
    sizes = {(128, 96): (85, 64), (90, 200): (48, 107), (300, 80): (107, 29)}
    image = draw(width, height)
    expected = describe_plainly(LAYOUTS["r50"], r50_state, image, sizes[width, height])
    features = r50.describe(image)
    assert features.dtype == np.float32
    assert features.std() > 0.01
    assert_close(features, expected)


@pytest.mark.parametrize("name", ["x101", "x152"])
def test_a_grouped_network_equals_a_plain_forward_of_its_layout(name):
    blocks = (1, 1, 2, 1)  # all of them are in the test of the keys, below
    layout = dataclasses.replace(LAYOUTS[name], blocks=blocks)
    architecture = dataclasses.replace(ARCHITECTURES[name], blocks=blocks)
    state = draw_state(layout)
    layers = build_layers(architecture)
    load_weights(layers, {n: state[file_key(architecture, n)] for n in list_shapes(layers)})
    network = make_network(architecture, layers, resize=(40, 70))
    image = draw(60, 50)
    expected = describe_plainly(layout, state, image, (48, 40), STD[name])
    assert_close(network.describe(image), expected)


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_no_key_is_left_over_on_either_side(name):
    architecture = ARCHITECTURES[name]
    needed = list_shapes(build_layers(architecture))
    assert {file_key(architecture, n): shape for n, shape in needed.items()} == list_keys(
        LAYOUTS[name]
    )


def test_what_is_published_for_each_network_is_what_is_used():
    found = {
        key: (a.name, a.groups, a.width, a.stride_in_1x1, a.channels, a.std)
        for key, a in ARCHITECTURES.items()
    }
    assert found == {
        "r50": ("R-50", 1, 64, True, "BGR", (1.0, 1.0, 1.0)),
        "x101": ("X-101", 32, 8, False, "BGR", (57.375, 57.12, 58.395)),
        "x152": ("X-152", 32, 8, False, "BGR", (1.0, 1.0, 1.0)),
        "resnet50": ("resnet50", 1, 64, False, "RGB", (58.395, 57.12, 57.375)),
    }
    assert ARCHITECTURES["r50"].address.endswith("/grid-feats-vqa/R-50/R-50.pth")


def test_blue_comes_first(r50, r50_state):
    red, blue = (Image.new("RGB", (128, 96), color) for color in ("red", "blue"))
    with torch.no_grad():
        by_hand = torch.tensor([0.0, 0.0, 255.0]) - MEAN  # red, as the network must see it
        flat = by_hand[None, :, None, None].expand(1, 3, 64, 85)
        expected = run_plainly(LAYOUTS["r50"], r50_state, flat)[0].permute(1, 2, 0).numpy()
    assert_close(r50.describe(red), expected)
    assert np.abs(r50.describe(blue) - expected).max() > 0.01 * np.abs(expected).max()


def test_a_checkpoint_of_the_oldest_format_is_read_too(tmp_path, r50_state, r50):
    torch.save({"model": r50_state}, tmp_path / "a.pth", _use_new_zipfile_serialization=False)
    assert open_backbone("R-50", tmp_path / "a.pth").weights == r50.weights


def test_images_described_together_are_described_as_alone(r50):
    images = [draw(128, 96, seed) for seed in range(3)]
    together = r50.describe_pixels(np.stack([r50.prepare(image) for image in images]))
    for image, features in zip(images, together, strict=True):
        assert_close(features.numpy(), r50.describe(image))


@pytest.mark.parametrize(
    ("size", "expected", "grid"),
    [
        ((640, 480), (800, 600), (19, 25)),
        ((480, 640), (600, 800), (25, 19)),
        ((640, 427), (899, 600), (19, 29)),
        ((640, 384), (1000, 600), (19, 32)),
        ((1000, 600), (1000, 600), (19, 32)),
        ((640, 360), (1000, 562), (18, 32)),  # 562.5 less a rounding, as in detectron2
        ((64, 64), (600, 600), (19, 19)),
        ((5000, 100), (1000, 20), (1, 32)),
        ((1, 9000), (1, 1000), (32, 1)),
    ],
)
def test_the_short_side_is_600_and_the_long_at_most_1000(size, expected, grid):
    assert choose_size(*size) == expected
    network = make_network(ARCHITECTURES["r50"], torch.nn.Identity())
    assert network.choose_grid(*size) == grid


def test_every_grid_has_at_most_19_by_32_cells_and_one_side_full():
    generator = np.random.default_rng(0)
    for width, height in generator.integers(20, 5000, (2000, 2)).tolist():
        new_width, new_height = choose_size(width, height)
        short, long = sorted((new_width, new_height))
        assert (short == 600 and long <= 1000) or long == 1000
        assert math.ceil(short / 32) <= 19
        assert math.ceil(long / 32) <= 32


def test_the_grid_is_known_before_the_network_runs(r50):
    for size in [(128, 96), (97, 128), (300, 33), (33, 64)]:
        assert r50.describe(draw(*size)).shape == (*r50.choose_grid(*size), 2048)


def test_pictures_of_any_mode_are_described_as_their_colours(r50):
    image = draw(128, 96)
    for mode in ("P", "CMYK", "L"):
        other = image.convert(mode)
        assert_close(r50.describe(other), r50.describe(other.convert("RGB")))
    assert np.abs(r50.describe(other) - r50.describe(image)).max() > 0  # grey is not coloured


def test_a_picture_turned_by_its_camera_is_turned_back(r50):
    image = draw(128, 96)
    stored = io.BytesIO()
    image.save(stored, "PNG", exif=turned(6))
    features = r50.describe(Image.open(stored))
    assert features.shape == (3, 2, 2048)
    assert_close(features, r50.describe(image.rotate(-90, expand=True)))


OFFSETS = "backbone.res2.0.conv2_offset.weight"
WRONG = [
    (
        {"backbone.res4.5.conv2.norm.bias": None},
        r"checkpoint of R-50: 1 key is missing, such as backbone\.res4\.5\.conv2\.norm\.bias; exp",
    ),
    (
        {"backbone.res5.3.conv1.weight": torch.zeros(1), "backbone.res5.3.conv1": torch.zeros(1)},
        r"2 keys are too many, such as backbone\.res5\.3\.conv1; expected grid-feats-vqa's check",
    ),
    (
        {"backbone.res2.0.conv1.weight": torch.zeros(256, 64, 1, 1)},
        r"res2\.0\.conv1\.weight has the shape \[256, 64, 1, 1\] .* expected \[64, 64, 1, 1\]",
    ),
    (
        {"backbone.stem.conv1.norm.bias": torch.zeros(64, dtype=torch.int64)},
        r"stem\.conv1\.norm\.bias has the shape \[64\] and type torch\.int64, expected \[64\]",
    ),
    (
        {OFFSETS: torch.zeros(18, 64, 3, 3)},
        r"deformable convolutions, as X-152\+\+ does, and these are not supported",
    ),
    (
        {"backbone.res3.1.conv2.norm.running_var": torch.full((128,), -1.0)},
        r"bad\.pth: the weights of layer2\.1\.conv2 or layer2\.1\.bn2 are NaN or infinite",
    ),
]


@pytest.mark.parametrize(("changes", "message"), WRONG)
def test_a_wrong_checkpoint_is_rejected_in_a_sentence(tmp_path, changes, message):
    state = {**blank_state(LAYOUTS["r50"]), **changes}
    state = {key: value for key, value in state.items() if value is not None}
    with pytest.raises(ValueError, match=message):
        open_backbone("r50", save_checkpoint(tmp_path / "bad.pth", state))


@pytest.mark.parametrize(("asked", "given"), [("x152", "r50"), ("resnet50", "x101")])
def test_a_checkpoint_of_another_network_is_recognised(tmp_path, asked, given):
    path = save_checkpoint(tmp_path / "other.pth", blank_state(LAYOUTS[given]))
    message = rf"not a checkpoint of .* keys are missing, such as .*; backbone={given} has its keys"
    with pytest.raises(ValueError, match=message):
        open_backbone(asked, path)


@pytest.mark.parametrize("content", [[1, 2], torch.zeros(3), {"model": 3}, {5: torch.zeros(1)}])
def test_a_file_without_a_network_is_rejected(tmp_path, content):
    torch.save(content, tmp_path / "a.pth")
    with pytest.raises(ValueError, match=r"a\.pth is not a checkpoint of R-50: 265 keys are miss"):
        open_backbone("r50", tmp_path / "a.pth")


def test_what_is_missing_is_named(tmp_path):
    text = tmp_path / "text.pth"
    text.write_text("<html>not found</html>")
    for name, weights, message in [
        ("r50", None, r"R-50 needs .* download https.*R-50\.pth and pass"),
        ("r50", tmp_path / "absent.pth", r"absent\.pth does not exist; expected grid-feats"),
        ("r50", text, rf"{text} cannot be read as a checkpoint"),
        ("r50", tmp_path, rf"{tmp_path} cannot be read as a checkpoint"),
        ("r51", None, "there is no backbone 'r51'; there are .*r50, .*x101, x152"),
        ("patch", text, "patch has no weights"),
    ]:
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            open_backbone(name, weights)


def test_names_have_one_spelling():
    names = {
        "r50": "R-50",
        "R-50": "R-50",
        "x-152": "X-152",
        "ResNet-50": "resnet50",
        "mine": "mine",
    }
    assert {name: official_name(name) for name in names} == names


def test_resnet50_equals_torchvisions_own_network(tmp_path):
    models = import_models()[0]
    torch.manual_seed(0)
    whole = models.resnet50(weights=None).eval()
    for name, buffer in whole.named_buffers():  # fresh ones are the identity
        if name.endswith(("running_mean", "running_var")):
            buffer.uniform_(0.5, 1.5)
    torch.save(whole.state_dict(), tmp_path / "resnet50.pth")
    backbone = open_backbone("resnet50", tmp_path / "resnet50.pth", resize=SMALL)
    image = draw(128, 96)
    # torchvision's own preprocessing, on the resized picture
    resized = image.resize((85, 64), Image.Resampling.BILINEAR)
    pixels = models.ResNet50_Weights.DEFAULT.transforms(crop_size=64, resize_size=64)
    tensor = torch.from_numpy(np.asarray(resized).copy()).permute(2, 0, 1) / 255
    mean, std = (torch.tensor(v)[:, None, None] for v in (pixels.mean, pixels.std))
    seen = {}
    whole.layer4.register_forward_hook(lambda module, given, output: seen.update(last=output))
    with torch.no_grad():
        whole(((tensor - mean) / std)[None])
    assert_close(backbone.describe(image), seen["last"][0].permute(1, 2, 0).numpy())


def test_without_a_network_connection_one_sentence_says_what_to_do(tmp_path, monkeypatch):
    with socket.socket() as taken:  # a port where nobody answers
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(
            OSError, match=r"torchvision's weights of resnet50 are not here.*weights=<f"
        ):
            fetch_weights(tmp_path)


def test_weights_downloaded_before_are_not_downloaded_again(tmp_path):
    name = import_models()[0].ResNet50_Weights.DEFAULT.url.rsplit("/", 1)[-1]
    (tmp_path / name).write_bytes(b"here")
    assert fetch_weights(tmp_path) == tmp_path / name


def test_the_fingerprint_changes_with_any_weight(r50_state):
    state = {n: r50_state[n] for n in list(r50_state)[:10]}
    changed = {**state, list(state)[3]: state[list(state)[3]] + 1e-6}
    assert hash_weights(state) == hash_weights(dict(reversed(state.items())))
    assert hash_weights(state) != hash_weights(changed)


def test_patch_is_a_backbone_like_the_others():
    image = draw(320, 240)
    backbone = open_backbone("patch")
    assert (backbone.name, backbone.resize, backbone.num_features) == ("patch", None, NUM_FEATURES)
    assert backbone.choose_grid(320, 240) == backbone.describe(image).shape[:2]
    np.testing.assert_array_equal(backbone.describe(image), describe(image))


def test_a_broken_picture_is_named(tmp_path):
    whole = io.BytesIO()
    draw(50, 40).save(whole, "PNG")
    for number, content in enumerate([b"", b"\xff\xd8\xff\xe0", whole.getvalue()[:300]]):
        path = tmp_path / f"{number}.png"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=rf"{number}\.png is not a readable image: \S"):
            read_image(path)
    with pytest.raises(FileNotFoundError, match=r"absent\.jpg does not exist"):
        read_image(tmp_path / "absent.jpg")


@pytest.mark.real
def test_photographs_are_described(r50):
    network = make_network(ARCHITECTURES["r50"], r50.layers, r50.device)
    paths = sorted((real_folder() / "images").rglob("*.jpg"))
    chosen = {network.choose_grid(*Image.open(path).size): path for path in paths}
    greys = [path for path in paths if Image.open(path).mode == "L"]
    for path in [*list(chosen.values())[:3], *greys[:1]]:
        image = read_image(path)
        features = network.describe(image)
        assert features.shape == (*network.choose_grid(*image.size), 2048)
        assert features.shape[0] * features.shape[1] <= 608
        assert np.isfinite(features).all()
        assert features.std() > 0.01
