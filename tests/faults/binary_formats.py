"""Every binary file format but HDF5: a small valid file, its reader and a check of the result."""

import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from data.backbones.patch.descriptor import describe
from data.backbones.resnet import ARCHITECTURES
from data.backbones.weights import read_weights
from data.features.dtype import DEFAULT
from data.features.from_npz import measure_regions, read_regions
from data.features.from_pth import load_tensor
from data.human_attention.map_arrays import MappedQuestions, spread_map
from data.human_attention.vqa_hat import read_map
from data.io.archive import extract
from data.io.images import read_image, upright_size
from mcan.published.imported_model import load_published
from mcan.published.weights import from_published
from tests.data.features.sample_features import draw_regions
from tests.faults.fuzzing import Format

GENERATOR = torch.Generator().manual_seed(0)
SHAPES = {"conv1.weight": (2, 3, 1, 1), "bn1.weight": (2,), "bn1.bias": (2,)}
QUESTION = MappedQuestions(
    np.array([1]), np.array([1]), np.array([[3, 4]]), ("other",), np.array([0])
)


def make_image(path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (24, 40, 3), dtype=np.uint8)
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(pixels).save(path, exif=exif)


def make_map(path: Path, depth: str = "L") -> None:
    heat = np.random.default_rng(0).integers(0, 256, (20, 30), dtype=np.uint8)
    image = Image.fromarray(heat.astype(np.uint16) * 257) if depth == "I;16" else None
    (image or Image.fromarray(heat)).save(path)


def read_any_image(path: Path) -> Any:
    width, height = upright_size(path)
    image = read_image(path)
    if image.width * image.height > 1 << 16:  # valid, but too slow for fuzzing
        return None
    return describe(image), (width, height)


def check_image(value: Any) -> None:
    assert value is None or np.isfinite(value[0]).all()


def read_human_map(path: Path) -> Any:
    image = read_map(path)
    assert image.ndim == 2
    return spread_map(0, 1, image, QUESTION) if image.size < 1 << 16 else None


def check_human_map(value: Any) -> None:
    if value is not None:
        assert np.isclose(value.cells.sum(), 1)
        assert (value.cells >= 0).all()


def make_features(path: Path, old: bool = False) -> None:
    tensor = torch.randn(1, 4, 3, 5, generator=GENERATOR)
    torch.save(tensor, path, _use_new_zipfile_serialization=not old)


def read_features(path: Path) -> np.ndarray:
    """As in `make features`, where the error for a number that is too large names the file."""
    tensor = load_tensor(path)[0]
    try:
        return DEFAULT.encode(7, tensor.flatten(1).t())
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def check_features(rows: np.ndarray) -> None:
    assert rows.ndim == 2
    assert np.isfinite(rows).all()


def make_regions(path: Path, compressed: bool = False) -> None:
    save = np.savez_compressed if compressed else np.savez
    save(path, **draw_regions(4, 6, 64, 48, seed=0))


def read_npz(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """As in `make features`: measured first, then read, and rejected by name."""
    num_features, num_regions, _ = measure_regions(path)
    features, boxes = read_regions(path)
    assert features.shape == (num_regions, num_features)
    try:
        return DEFAULT.encode(7, np.ascontiguousarray(features)), boxes
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def check_regions(value: tuple[np.ndarray, np.ndarray]) -> None:
    rows, boxes = value
    check_features(rows)
    assert boxes.shape == (len(rows), 4)
    assert np.isnan(boxes).all() or ((boxes >= 0) & (boxes <= 1)).all()


def make_network(path: Path) -> None:
    state = {"backbone.stem.conv1.weight": torch.ones(2, 3, 1, 1)}
    state |= {f"backbone.stem.conv1.norm.{part}": torch.ones(2) for part in ("weight", "bias")}
    torch.save({"model": state}, path)


def read_network(path: Path) -> Any:
    return read_weights(ARCHITECTURES["r50"], path, dict(SHAPES))


def make_published(path: Path) -> None:
    """Not all of MCAN's weights: enough of them to be read to the end."""
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


FORMATS = [
    Format("JPEG", "COCO_val2014_000000000007.jpg", make_image, read_any_image, check_image),
    Format("PNG", "7.png", make_image, read_any_image, check_image),
    Format("human map", "7_1.png", make_map, read_human_map, check_human_map),
    Format("human map of 16 bits", "7_1.png", partial(make_map, depth="I;16"), read_human_map,
           check_human_map),
    Format(".pth features", "7.pth", make_features, read_features, check_features),
    Format(".pth features, legacy format", "7.pth", partial(make_features, old=True),
           read_features, check_features),
    Format(".npz regions", "7.npz", make_regions, read_npz, check_regions),
    Format(".npz regions, compressed", "7.npz", partial(make_regions, compressed=True), read_npz,
           check_regions),
    Format("network weights", "R-50.pth", make_network, read_network),
    Format("published MCAN", "epoch13.pkl", make_published, read_published, is_valid=False),
    Format("zip archive", "questions.zip", make_archive, read_archive),
]  # fmt: skip
