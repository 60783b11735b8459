"""From a folder of images to a feature store: one grid of features per image."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import torch

from data.backbones.network import Network
from data.backbones.registry import Backbone
from data.features.dtype import DEFAULT
from data.features.resumable_build import Shape, fill_store, inspect_files, list_files
from data.features.writer import COMMIT_BYTES, StoreWriter
from data.io.atomic_files import check_output_file
from data.io.image_names import is_image, read_image_id
from data.io.images import check_image, read_image
from data.io.threads import choose_threads, run_threads

MOST_NAMED = 5  # unreadable images in one message
NETWORK_COMMIT_BYTES = 8 << 20  # three or four images, each seconds of work on a CPU


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

    All images are decoded before the first is described, so that one message names the broken ones.
    What an interrupted run has described is not described again, unless the file has changed; the
    store is whole or absent.
    """
    folder, output, num_threads = Path(images), Path(output), choose_threads(num_threads)
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}, expected at least 1")
    check_output_file(output, force)
    files = list_images(folder)
    sizes: dict[int, tuple[int, int]] = {}  # width and height in pixels, upright
    broken: list[str] = []

    def measure(image_id: int) -> Shape:
        try:
            sizes[image_id] = check_image(files[image_id])
        except ValueError as error:
            broken.append(str(error))
            return backbone.num_features, 1, 1
        return (backbone.num_features, *backbone.choose_grid(*sizes[image_id]))

    def describe_all(writer: StoreWriter, image_ids: list[int]) -> Iterable[None]:
        if not isinstance(backbone, Network):
            return describe_each(backbone, files, image_ids, writer, num_threads)
        # a CPU gains nothing from batches
        together = 1 if backbone.device.type == "cpu" else batch_size
        batches = plan_batches(backbone, sizes, image_ids, together)
        return describe_batches(backbone, files, batches, together, writer, num_threads)

    scan = inspect_files(files, measure, num_threads, known={})
    reject_broken(broken)
    if commit_bytes is None:
        commit_bytes = NETWORK_COMMIT_BYTES if isinstance(backbone, Network) else COMMIT_BYTES
    return fill_store(
        output,
        folder,
        scan,
        describe_all,
        "describe",
        f", weights {backbone.weights}" if backbone.weights else "",
        backbone=backbone.name,
        resize=backbone.resize,
        stride=backbone.stride,
        dtype=dtype,
        force=force,
        commit_bytes=commit_bytes,
    )


def list_images(folder: Path) -> dict[int, Path]:
    """{image_id: file} by ascending id: COCO's names, or plain <image_id>.jpg, .jpeg or .png."""

    def read_id(path: Path) -> int | None:
        if not is_image(path):
            return None
        image_id = read_image_id(path)
        if image_id is None:
            raise ValueError(
                f"{path} is not named COCO_<split>_<image_id> or <image_id>; rename it to a number "
                f"such as 1{path.suffix}, or move it out of the folder"
            )
        return image_id

    return list_files(folder, read_id, ".jpg or .png images")


def reject_broken(problems: list[str]) -> None:
    """Raise where images cannot be read, with what to do about them."""
    if not problems:
        return
    named = "; ".join(sorted(problems)[:MOST_NAMED])
    if len(problems) == 1:
        raise ValueError(f"{named}; replace it, or remove it and the questions about it")
    others = f"; and {len(problems) - MOST_NAMED} more" if len(problems) > MOST_NAMED else ""
    raise ValueError(
        f"{len(problems)} images cannot be read: {named}{others}; replace them, or remove them and "
        "the questions about them"
    )


def describe_each(
    backbone: Backbone,
    files: dict[int, Path],
    image_ids: list[int],
    writer: StoreWriter,
    num_threads: int,
) -> Iterator[None]:
    """Describe images one by one, in threads."""

    def work(image_id: int) -> None:
        path = files[image_id]
        write_features(backbone, writer, path, image_id, backbone.describe(read_image(path)))

    return run_threads(work, image_ids, num_threads)


def write_features(
    backbone: Backbone,
    writer: StoreWriter,
    path: Path,
    image_id: int,
    features: np.ndarray | torch.Tensor,  # (h, w, F)
) -> None:
    """Store an image's features; an error names its file, and what the backbone promised."""
    number = writer.number[image_id]
    promised = int(writer.heights[number]), int(writer.widths[number]), backbone.num_features
    if tuple(features.shape) != promised:
        raise ValueError(
            f"{path}: backbone {backbone.name} returned features of shape "
            f"{'×'.join(map(str, features.shape))} (rows × columns × features), but its "
            f"choose_grid and num_features promise {'×'.join(map(str, promised))}; with a stride "
            f"of {backbone.stride} pixels, a part of a cell counts as a cell (round up)"
        )
    try:
        writer.write(image_id, features.reshape(-1, backbone.num_features))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def plan_batches(
    network: Network, sizes: dict[int, tuple[int, int]], image_ids: list[int], batch_size: int
) -> list[list[int]]:
    """Split images into batches of those that the network sees in the same size."""
    alike: dict[tuple[int, int], list[int]] = defaultdict(list)
    for image_id in image_ids:
        alike[network.choose_pixels(*sizes[image_id])].append(image_id)
    return [
        group[start : start + batch_size]
        for _, group in sorted(alike.items())
        for start in range(0, len(group), batch_size)
    ]


def describe_batches(
    network: Network,
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
            write_features(network, writer, files[image_id], image_id, described)
            yield
