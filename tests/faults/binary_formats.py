"""Every binary file that is read, HDF5 aside: a small sound one, its reader, what must hold."""

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from data.archive import extract
from data.backbones.architecture import ARCHITECTURES
from data.backbones.weights import read_weights
from data.convert import load_tensor
from data.half import to_half
from data.human_attention import read_map
from data.human_maps import LookedAtQuestions, spread_map
from data.patch import describe
from data.pictures import read_image, upright_size
from mcan.published import from_published, load_published
from tests.faults.text_formats import Format

GENERATOR = torch.Generator().manual_seed(0)
SHAPES = {"conv1.weight": (2, 3, 1, 1), "bn1.weight": (2,), "bn1.bias": (2,)}
QUESTION = LookedAtQuestions(
    np.array([1]), np.array([1]), np.array([[3, 4]]), ("other",), np.array([0])
)


def make_picture(path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (24, 40, 3), dtype=np.uint8)
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(pixels).save(path, exif=exif)


def make_map(path: Path, depth: str = "L") -> None:
    heat = np.random.default_rng(0).integers(0, 256, (20, 30), dtype=np.uint8)
    picture = Image.fromarray(heat.astype(np.uint16) * 257) if depth == "I;16" else None
    (picture or Image.fromarray(heat)).save(path)


def read_picture(path: Path) -> Any:
    width, height = upright_size(path)
    picture = read_image(path)
    if picture.width * picture.height > 1 << 16:  # sound, but too much work for a fuzzer
        return None
    return describe(picture), (width, height)


def check_picture(value: Any) -> None:
    assert value is None or np.isfinite(value[0]).all()


def read_human_map(path: Path) -> Any:
    picture = read_map(path)
    assert picture.ndim == 2
    return spread_map(0, 1, picture, QUESTION) if picture.size < 1 << 16 else None


def check_human_map(value: Any) -> None:
    if value is not None:
        assert np.isclose(value.cells.sum(), 1)
        assert (value.cells >= 0).all()


def make_features(path: Path, old: bool = False) -> None:
    tensor = torch.randn(1, 4, 3, 5, generator=GENERATOR)
    torch.save(tensor, path, _use_new_zipfile_serialization=not old)


def read_features(path: Path) -> np.ndarray:
    """As `make features` does; what a number is too large for names the image there."""
    tensor = load_tensor(path)[0]
    try:
        return to_half(7, tensor.flatten(1).t())
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def check_features(rows: np.ndarray) -> None:
    assert rows.ndim == 2
    assert np.isfinite(rows).all()


def make_network(path: Path) -> None:
    state = {"backbone.stem.conv1.weight": torch.ones(2, 3, 1, 1)}
    state |= {f"backbone.stem.conv1.norm.{part}": torch.ones(2) for part in ("weight", "bias")}
    torch.save({"model": state}, path)


def read_network(path: Path) -> Any:
    return read_weights(ARCHITECTURES["r50"], path, dict(SHAPES))


def make_published(path: Path) -> None:
    """Not MCAN's weights all: enough of them that reading goes all the way."""
    names = ("embedding.weight", "img_feat_linear.weight", "proj.weight")
    state = {name: torch.ones(3, 2) for name in names}
    torch.save({"state_dict": state, "lr": 0.1}, path)


def read_published(path: Path) -> Any:
    state = load_published(path)
    try:
        return from_published(state, 1)
    except ValueError as error:
        raise ValueError(f"{path} cannot be imported: {error}") from None


def make_archive(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.json", b'{"questions": []}' * 20)
        archive.writestr("deep/1_1.png", bytes(range(256)))


def read_archive(path: Path) -> Any:
    output = path.parent / "out"
    found = extract(path, output)
    assert all(file.resolve().is_relative_to(output.resolve()) for file in found)
    return [file.unlink() for file in found]


def grow(kind: str) -> bytes:
    """A picture in another format than its name says."""
    stream = io.BytesIO()
    Image.new("RGB", (9, 7), (200, 10, 10)).save(stream, kind)
    return stream.getvalue()


FORMATS = [
    Format("JPEG", "COCO_val2014_000000000007.jpg", make_picture, read_picture, check_picture),
    Format("PNG", "7.png", make_picture, read_picture, check_picture),
    Format("human map", "7_1.png", make_map, read_human_map, check_human_map),
    Format(
        "human map of 16 bits",
        "7_1.png",
        lambda path: make_map(path, "I;16"),
        read_human_map,
        check_human_map,
    ),
    Format(".pth features", "7.pth", make_features, read_features, check_features),
    Format(
        ".pth features of old",
        "7.pth",
        lambda path: make_features(path, old=True),
        read_features,
        check_features,
    ),
    Format("network weights", "R-50.pth", make_network, read_network),
    Format("published MCAN", "epoch13.pkl", make_published, read_published),
    Format("zip archive", "questions.zip", make_archive, read_archive),
]
