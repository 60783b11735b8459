"""From a folder of grid-feats `<image_id>.pth` files to one feature store."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Lock

import torch

from data.backbones.resnet import official_name
from data.features.dtype import DEFAULT
from data.features.manifest import GRID_FEATS, check_resize, check_text
from data.features.resumable_build import (
    Shape,
    check_features,
    fill_store,
    inspect_files,
    list_files,
    recall_scan,
    record_file,
)
from data.features.writer import COMMIT_BYTES, StoreWriter
from data.io.atomic_files import check_output_file
from data.io.threads import FILES_AT_A_TIME, choose_threads, run_threads
from data.io.torch_files import read_saved


def convert_folder(
    source: str | Path,
    output: str | Path,
    backbone: str = "grid-feats",
    resize: Sequence[int] | None = GRID_FEATS,
    dtype: str = DEFAULT.name,
    force: bool = False,
    num_threads: int = 0,
    commit_bytes: int = COMMIT_BYTES,
) -> int:
    """Convert every `.pth` of a folder; give the number of images that had to be copied.

    Killed at any moment, the same call adds what is missing, and copies what changed in the
    meantime again; `num_threads=0` takes one for each processor.
    """
    source, output, num_threads = Path(source), Path(output), choose_threads(num_threads)
    backbone, resize = official_name(check_text("backbone", backbone)), check_resize(resize)
    check_output_file(output, force)
    files = list_files(source, read_id, "<image_id>.pth or .npz files")

    def measure(image_id: int) -> Shape:
        _, features, height, width = load_tensor(files[image_id]).shape
        return features, height, width

    scan = inspect_files(files, measure, num_threads, recall_scan(record_file(output), source))
    check_features(files, scan, "cell")
    return fill_store(
        output,
        source,
        scan,
        lambda writer, image_ids: copy_files(files, image_ids, writer, num_threads),
        "copy",
        backbone=backbone,
        resize=resize,
        dtype=dtype,
        force=force,
        commit_bytes=commit_bytes,
    )


def copy_files(
    files: dict[int, Path], image_ids: list[int], writer: StoreWriter, num_threads: int
) -> Iterable[None]:
    """Store the features [1, F, h, w] of these images' files, in threads."""
    parsing = Lock()  # holds the interpreter: threads that parse at once slow each other down

    def copy(image_id: int) -> None:
        with parsing:
            tensor = load_tensor(files[image_id])  # a map: nothing of it is read yet
        try:
            writer.write(image_id, tensor[0].flatten(1).t())
        except ValueError as error:
            path = files[image_id]
            raise ValueError(f"{path}: {error}; repair the file and run this again") from None

    return run_threads(copy, image_ids, num_threads, FILES_AT_A_TIME)


def read_id(path: Path) -> int | None:
    """The image id in the name of a file; hidden files have none, any other file must."""
    if path.name.startswith("."):
        return None
    if path.suffix != ".pth" or not (path.stem.isascii() and path.stem.isdigit()):
        raise ValueError(f"{path} is not named <image_id>.pth; move it out of the folder")
    return int(path.stem)


def load_tensor(path: Path) -> torch.Tensor:
    """Map one file's tensor [1, F, h, w]; raise when it holds anything else."""
    try:
        tensor = read_saved(path, "a tensor")
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} has gone; start again with all files there") from None
    if not isinstance(tensor, torch.Tensor) or not tensor.dtype.is_floating_point:
        raise ValueError(f"{path} holds no tensor of floating-point numbers")
    if tensor.dim() != 4 or tensor.shape[0] != 1 or 0 in tensor.shape:
        raise ValueError(f"{path} has shape {list(tensor.shape)}, expected [1, features, h, w]")
    return tensor
