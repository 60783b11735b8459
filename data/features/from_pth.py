"""From a folder of grid-feats `<image_id>.pth` files to one feature store."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Lock

import torch

from data.backbones.resnet import official_name
from data.features.dtype import DEFAULT
from data.features.manifest import GRID_FEATS, check_resize, check_text
from data.features.resumable_build import (
    Scan,
    Shape,
    State,
    StoreFiller,
    add_file,
    inspect_files,
    read_state,
)
from data.features.writer import COMMIT_BYTES, StoreWriter
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
    source, output = Path(source), Path(output)
    backbone = official_name(check_text("backbone", backbone))
    resize, num_threads = check_resize(resize), choose_threads(num_threads)
    filler = StoreFiller(
        output=output,
        folder=source,
        backbone=backbone,
        resize=resize,
        dtype=dtype,
        force=force,
        commit_bytes=commit_bytes,
    )
    files = list_files(source)
    scan = scan_files(files, filler.recall(), num_threads)
    check_features(files, {image_id: shape for image_id, (_, shape) in scan.items()})

    def copy_all(writer: StoreWriter, image_ids: list[int]) -> Iterable[None]:
        parsing = Lock()  # is Python's work: threads that do it at once only hinder each other

        def copy_one(image_id: int) -> None:
            with parsing:
                tensor = load_tensor(files[image_id])  # a map: nothing of it is read yet
            copy(image_id, tensor, files[image_id], writer)

        return run_threads(copy_one, image_ids, num_threads, FILES_AT_A_TIME)

    return filler.fill(scan, copy_all, "copy")


def copy(image_id: int, tensor: torch.Tensor, path: Path, writer: StoreWriter) -> None:
    """Store the features [1, F, h, w] of one file."""
    try:
        writer.write(image_id, tensor[0].flatten(1).t())
    except ValueError as error:
        raise ValueError(f"{path}: {error}; repair the file and run this again") from None


def list_files(source: Path) -> dict[int, Path]:
    """{image_id: file} by ascending id; raise when the folder holds anything else."""
    if not source.is_dir():
        raise FileNotFoundError(f"{source} is not a folder; expected one of <image_id>.pth files")
    files: dict[int, Path] = {}
    for path in source.iterdir():
        if path.name.startswith("."):
            continue
        if path.suffix != ".pth" or not (path.stem.isascii() and path.stem.isdigit()):
            raise ValueError(f"{path} is not named <image_id>.pth; move it out of the folder")
        add_file(files, int(path.stem), path)
    if not files:
        raise ValueError(f"{source} holds no <image_id>.pth files")
    return dict(sorted(files.items()))


def scan_files(files: dict[int, Path], before: Scan, num_threads: int) -> Scan:
    """The state and shape of every file, reading no features, and no file inspected before."""

    def inspect(image_id: int) -> tuple[State, Shape]:
        state = read_state(files[image_id])
        if image_id in before and before[image_id][0] == state:
            return before[image_id]
        _, features, height, width = load_tensor(files[image_id]).shape
        return state, (features, height, width)

    return inspect_files(inspect, files, num_threads)


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


def check_features(files: dict[int, Path], shapes: dict[int, Shape]) -> None:
    """Raise when images differ in their number of features."""
    first = next(iter(shapes))
    for image_id, (features, _, _) in shapes.items():
        if features != shapes[first][0]:
            raise ValueError(
                f"{files[image_id]} has {features} features per cell, but "
                f"{files[first]} has {shapes[first][0]}; all must have the same"
            )
