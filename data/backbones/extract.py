"""From a folder of images to a feature store: one grid of features per image."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from data.backbones.registry import Backbone, BatchedBackbone
from data.features.dtype import DEFAULT
from data.features.resumable_build import (
    Shape,
    State,
    StoreFiller,
    add_file,
    inspect_files,
    read_state,
)
from data.features.writer import COMMIT_BYTES, StoreWriter
from data.io.images import read_image, upright_size
from data.io.threads import choose_threads, run_threads

ENDINGS = {".jpg", ".jpeg", ".png"}
IMAGE_NAME = re.compile(r"(?:COCO_\w+_)?0*(\d+)", re.ASCII)  # COCO_val2014_000000000042, or 42
NETWORK_COMMIT_BYTES = 8 << 20  # three or four images, each seconds of work on a CPU


@dataclass(frozen=True)
class ImageFile:
    """What is known of an image file before it is decoded."""

    state: State
    shape: Shape  # of its description
    size: tuple[int, int]  # width and height in pixels, upright


def extract_features(
    images: str | Path,
    output: str | Path,
    backbone: Backbone,
    dtype: str = DEFAULT.name,
    force: bool = False,
    num_threads: int = 0,
    batch_size: int = 4,
    commit_bytes: int | None = None,
) -> int:
    """Describe every image of a folder; the number described now.

    What an interrupted run has described is not described again, unless the file has changed; the
    store is whole or absent.
    """
    folder, num_threads = Path(images), choose_threads(num_threads)
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}, expected at least 1")
    is_network = isinstance(backbone, BatchedBackbone)
    filler = StoreFiller(
        output=Path(output),
        folder=folder,
        backbone=backbone.name,
        resize=backbone.resize,
        stride=backbone.stride,
        dtype=dtype,
        details=f", weights {backbone.weights}" if backbone.weights else "",
        force=force,
        commit_bytes=commit_bytes or (NETWORK_COMMIT_BYTES if is_network else COMMIT_BYTES),
    )
    files = list_images(folder)
    inspected = inspect_files(
        lambda image_id: inspect(files[image_id], backbone), files, num_threads
    )

    def describe_all(writer: StoreWriter, image_ids: list[int]) -> Iterable[None]:
        if not isinstance(backbone, BatchedBackbone):
            return describe_each(backbone, files, image_ids, writer, num_threads)
        # a CPU gains nothing from batches
        together = 1 if backbone.device.type == "cpu" else batch_size
        batches = plan_batches(backbone, inspected, image_ids, together)
        return describe_batches(backbone, files, batches, together, writer, num_threads)

    scan = {image_id: (file.state, file.shape) for image_id, file in inspected.items()}
    return filler.fill(scan, describe_all, "describe")


def list_images(folder: Path) -> dict[int, Path]:
    """{image_id: file} by ascending id: COCO's names, or plain <image_id>.jpg or .png."""
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder of images")
    files: dict[int, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in ENDINGS:
            continue
        match = IMAGE_NAME.fullmatch(path.stem)
        if match is None:
            raise ValueError(f"{path} is not named COCO_<split>_<image_id> or <image_id>")
        add_file(files, int(match.group(1)), path)
    if not files:
        raise ValueError(f"{folder} holds no .jpg or .png images")
    return dict(sorted(files.items()))


def inspect(path: Path, backbone: Backbone) -> ImageFile:
    """The state of a file and the shape of its description, without decoding it."""
    size = upright_size(path)
    return ImageFile(read_state(path), (backbone.num_features, *backbone.choose_grid(*size)), size)


def describe_each(
    backbone: Backbone,
    files: dict[int, Path],
    image_ids: list[int],
    writer: StoreWriter,
    num_threads: int,
) -> Iterator[None]:
    """Describe images one by one, in threads."""

    def work(image_id: int) -> None:
        described = backbone.describe(read_image(files[image_id]))  # (h, w, F)
        check_shape(backbone, writer, files[image_id], image_id, described.shape)
        writer.write(image_id, described.reshape(-1, backbone.num_features))

    return run_threads(work, image_ids, num_threads)


def check_shape(
    backbone: Backbone, writer: StoreWriter, path: Path, image_id: int, shape: Sequence[int]
) -> None:
    """Raise where a backbone returned other cells or features than it promised for an image."""
    number = writer.number[image_id]
    promised = int(writer.heights[number]), int(writer.widths[number]), backbone.num_features
    if tuple(shape) != promised:
        raise ValueError(
            f"{path}: backbone {backbone.name} returned features of shape "
            f"{'×'.join(map(str, shape))} (rows × columns × features), but its choose_grid and "
            f"num_features promise {'×'.join(map(str, promised))}; with a stride of "
            f"{backbone.stride} pixels, a part of a cell counts as a cell (round up)"
        )


def plan_batches(
    network: BatchedBackbone, inspected: dict[int, ImageFile], image_ids: list[int], batch_size: int
) -> list[list[int]]:
    """Split images into batches of those that the network sees in the same size."""
    alike: dict[tuple[int, int], list[int]] = defaultdict(list)
    for image_id in image_ids:
        alike[network.choose_pixels(*inspected[image_id].size)].append(image_id)
    return [
        group[start : start + batch_size]
        for _, group in sorted(alike.items())
        for start in range(0, len(group), batch_size)
    ]


def describe_batches(
    network: BatchedBackbone,
    files: dict[int, Path],
    batches: list[list[int]],
    batch_size: int,
    writer: StoreWriter,
    num_threads: int,
) -> Iterator[None]:
    """Describe images batch by batch, while threads decode those that come next.

    How a convolution is computed, and so its last bits, depends on the size of a batch. Every batch
    is filled up to the same one, so that an image's features do not depend on the others.
    """

    def read_batch(batch: list[int]) -> tuple[list[int], np.ndarray]:
        pixels = np.stack([network.prepare(read_image(files[n])) for n in batch])
        return batch, np.resize(pixels, (batch_size, *pixels.shape[1:]))  # by repetition

    for batch, pixels in run_threads(read_batch, batches, num_threads):
        try:
            features = network.describe_pixels(pixels)
        except torch.OutOfMemoryError:
            raise ValueError(
                f"{len(pixels)} images of {pixels.shape[2]}×{pixels.shape[1]} pixels do not fit "
                f"into the memory of {network.device}; pass a smaller batch_size="
            ) from None
        for image_id, described in zip(batch, features, strict=False):  # without the filling
            check_shape(network, writer, files[image_id], image_id, described.shape)
            try:
                writer.write(image_id, described.flatten(0, 1))
            except ValueError as error:
                raise ValueError(f"{files[image_id]}: {error}") from None
            yield
