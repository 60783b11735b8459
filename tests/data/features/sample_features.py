"""Small feature stores, .pth files and questions for the tests of reading and writing them."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from data.batching.examples import Examples
from data.features.writer import StoreWriter

SIZES = {7: (2, 3), 3: (3, 2), 12: (2, 3), 20: (1, 5), 21: (4, 4), 30: (2, 3)}


def draw_rows(
    sizes: dict[int, tuple[int, int]] = SIZES, num_features: int = 5, seed: int = 0
) -> dict[int, np.ndarray]:
    """{image_id: rows (L, F)}, float16 numbers that differ from cell to cell."""
    generator = np.random.default_rng(seed)
    return {
        image_id: generator.normal(size=(height * width, num_features)).astype(np.float16)
        for image_id, (height, width) in sizes.items()
    }


def open_writer(
    path: Path, sizes: dict[int, tuple[int, int]] = SIZES, num_features: int = 5, **options: Any
) -> StoreWriter:
    """A writer of a store of the backbone `patch`."""
    return StoreWriter(path, sizes, num_features, **{"source": "s", "backbone": "patch"} | options)


def write_sample(
    path: Path,
    sizes: dict[int, tuple[int, int]] = SIZES,
    num_features: int = 5,
    seed: int = 0,
    **options: Any,
) -> dict[int, np.ndarray]:
    """Write a store and give the rows that are in it."""
    rows = draw_rows(sizes, num_features, seed)
    with open_writer(path, sizes, num_features, **options) as writer:
        for image_id in reversed(list(rows)):
            writer.write(image_id, rows[image_id])
    return rows


def write_pth(folder: Path, num_images: int = 6, num_features: int = 4) -> dict[int, torch.Tensor]:
    """Write `<image_id>.pth` files as grid-feats-vqa does; give {image_id: tensor [1, F, h, w]}."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator().manual_seed(0)
    shapes = [(19, 25), (25, 19), (19, 29)]
    tensors = {}
    for n in range(num_images):
        image_id = 10 * n + 1
        height, width = shapes[n % len(shapes)]
        tensors[image_id] = torch.randn(1, num_features, height, width, generator=generator)
        torch.save(tensors[image_id], folder / f"{image_id}.pth")
    return tensors


def ask(image_ids: list[int], num_answers: int = 4, has_answers: bool = True) -> Examples:
    """One question for each of the given images (which may repeat), with one answer each."""
    count = len(image_ids)
    targets = count if has_answers else 0
    return Examples(
        question_ids=np.arange(count, dtype=np.int64) + 1000,
        image_ids=np.array(image_ids, dtype=np.int64),
        tokens=np.arange(count * 3, dtype=np.int64).reshape(count, 3),
        target_offsets=np.arange(count + 1) if has_answers else np.zeros(count + 1, dtype=np.int64),
        target_indices=np.arange(targets) % num_answers,
        target_scores=np.full(targets, 0.5, dtype=np.float32),
        has_answers=has_answers,
    )


def draw_regions(
    num_regions: int, num_features: int, width: int, height: int, seed: int
) -> dict[str, Any]:
    """The arrays of one bottom-up file, in the published orientation."""
    generator = np.random.default_rng(seed)
    corners = generator.uniform(0, [width, height], size=(num_regions, 2, 2))
    boxes = np.concatenate([corners.min(1), corners.max(1)], axis=1).astype(np.float32)
    return {
        "x": generator.normal(size=(num_features, num_regions)).astype(np.float32),
        "bbox": boxes,
        "image_h": height,
        "image_w": width,
        "num_bbox": num_regions,
    }


def write_npz(
    folder: Path,
    regions: dict[int, int],
    num_features: int = 6,
    transposed: bool = False,
    name: str = "COCO_val2014_{:012d}.jpg.npz",
) -> dict[int, dict[str, Any]]:
    """Write a bottom-up file for each image of {image_id: number of regions}; their arrays.

    `transposed` files have x as (regions, features), as some distributions have it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = {n: draw_regions(count, num_features, 64, 48, n) for n, count in regions.items()}
    for image_id, arrays in files.items():
        x = arrays["x"].T if transposed else arrays["x"]
        np.savez(folder / name.format(image_id), **{**arrays, "x": x})
    return files
