"""From a folder of grid-feats `<image_id>.pth` files to one feature store."""

import zipfile
from collections.abc import Sequence
from pathlib import Path

import torch
from tqdm import tqdm

from data.destination import refuse_existing
from data.entries import LARGEST_ID
from data.manifest import GRID_FEATS, check_resize, check_text
from data.scan import Scan, Shape, forget_changed, read_state, recall_scan, save_scan
from data.store_writer import COMMIT_BYTES, StoreWriter
from data.threads import choose_threads, run_threads


def convert_folder(
    source: str | Path,
    output: str | Path,
    backbone: str = "grid-feats",
    resize: Sequence[int] | None = GRID_FEATS,
    force: bool = False,
    num_threads: int = 0,
    commit_bytes: int = COMMIT_BYTES,
) -> int:
    """Convert every `.pth` of a folder; give the number of images that had to be copied.

    Killed at any moment, the same call goes on with what is missing, and copies what changed in the
    meantime again; `num_threads=0` takes one for each processor.
    """
    source, output = Path(source), Path(output)
    check_text("backbone", backbone)
    resize, num_threads = check_resize(resize), choose_threads(num_threads)
    refuse_existing(output, force)
    files = list_files(source)
    record = output.with_name(output.name + ".scan")
    origin = str(source.resolve())
    before = recall_scan(record, origin)
    scan = scan_files(files, before, num_threads)
    shapes = {image_id: shape for image_id, (_, shape) in scan.items()}
    num_features = next(iter(shapes.values()))[0]
    check_features(files, shapes, num_features)
    with StoreWriter(
        output,
        {image_id: (height, width) for image_id, (_, height, width) in shapes.items()},
        num_features,
        source=f"{origin} ({len(files)} files)",
        backbone=backbone,
        resize=resize,
        force=force,
        resume=True,
        commit_bytes=commit_bytes,
    ) as writer:
        forget_changed(writer, before, scan)
        save_scan(record, origin, scan)
        missing = [image_id for image_id in files if image_id not in writer.done]

        def copy(image_id: int) -> None:
            tensor = load_tensor(files[image_id])[0]  # (F, h, w)
            try:
                writer.write(image_id, tensor.flatten(1).t())
            except ValueError as error:
                raise ValueError(
                    f"{files[image_id]}: {error}; repair the file and run this again"
                ) from None

        bar = tqdm(total=len(files), initial=len(files) - len(missing), desc="copy", unit="image")
        with bar:
            for _ in run_threads(copy, missing, num_threads):
                bar.update()
    record.unlink()
    return len(missing)


def list_files(source: Path) -> dict[int, Path]:
    """Give {image_id: file} by ascending id; raise when the folder holds anything else."""
    if not source.is_dir():
        raise FileNotFoundError(f"{source} is not a folder; expected one of <image_id>.pth files")
    files: dict[int, Path] = {}
    for path in source.iterdir():
        if path.name.startswith("."):
            continue
        if path.suffix != ".pth" or not (path.stem.isascii() and path.stem.isdigit()):
            raise ValueError(f"{path} is not named <image_id>.pth; move it out of the folder")
        image_id = int(path.stem)
        if image_id > LARGEST_ID:
            raise ValueError(f"{path}: an image id may be at most {LARGEST_ID}; rename the file")
        if image_id in files:
            raise ValueError(f"{path} and {files[image_id]} are the same image; keep one of them")
        files[image_id] = path
    if not files:
        raise ValueError(f"{source} holds no <image_id>.pth files")
    return dict(sorted(files.items()))


def scan_files(files: dict[int, Path], before: Scan, num_threads: int) -> Scan:
    """Give the state and shape of every file, reading no features, and no file looked at before."""

    def look(image_id: int) -> tuple[int, tuple[tuple[int, int], Shape]]:
        state = read_state(files[image_id])
        if image_id in before and before[image_id][0] == state:
            return image_id, before[image_id]
        _, features, height, width = load_tensor(files[image_id]).shape
        return image_id, (state, (features, height, width))

    bar = tqdm(run_threads(look, files, num_threads), total=len(files), desc="scan", unit="image")
    return dict(sorted(bar))


def load_tensor(path: Path) -> torch.Tensor:
    """Map one file's tensor [1, F, h, w]; raise when it holds anything else."""
    try:
        # files written before torch 1.6 are no zip archives and cannot be mapped
        tensor = torch.load(
            path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path)
        )
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} has gone; start again with all files there") from None
    except Exception as error:  # torch.load raises whatever a damaged pickle leads to
        reason = f"{type(error).__name__}: {error}".split("\n")[0][:120]
        raise ValueError(
            f"{path} cannot be read as a tensor ({reason}): it is damaged, or torch.save did not "
            "write it; copy or download it again"
        ) from None
    if not isinstance(tensor, torch.Tensor) or not tensor.dtype.is_floating_point:
        raise ValueError(f"{path} holds no tensor of floating-point numbers")
    if tensor.dim() != 4 or tensor.shape[0] != 1 or 0 in tensor.shape:
        raise ValueError(f"{path} has shape {list(tensor.shape)}, expected [1, features, h, w]")
    return tensor


def check_features(files: dict[int, Path], shapes: dict[int, Shape], num_features: int) -> None:
    """Raise when images differ in their number of features."""
    for image_id, (features, _, _) in shapes.items():
        if features != num_features:
            raise ValueError(
                f"{files[image_id]} has {features} features a cell, but "
                f"{files[next(iter(files))]} has {num_features}; all must have the same"
            )
