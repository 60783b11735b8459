"""From a folder of grid-feats `<image_id>.pth` files to one feature store."""

import hashlib
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TypeVar

import torch
from tqdm import tqdm

from data.destination import refuse_existing
from data.files import read_json, write_json
from data.manifest import GRID_FEATS, check_resize
from data.store_writer import COMMIT_BYTES, StoreWriter

Item = TypeVar("Item")
Result = TypeVar("Result")


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

    Killed at any moment, the same call goes on with what is missing; `num_threads=0` takes one for
    each processor.
    """
    source, output = Path(source), Path(output)
    refuse_existing(output, force)
    files = list_files(source)
    num_threads = num_threads or len(os.sched_getaffinity(0))
    identity = f"{source.resolve()} ({fingerprint_files(files)})"
    scan = output.with_name(output.name + ".scan")
    shapes = recall_shapes(scan, identity) or scan_shapes(files, num_threads)
    num_features = next(iter(shapes.values()))[0]
    check_features(files, shapes, num_features)
    with StoreWriter(
        output,
        {image_id: (height, width) for image_id, (_, height, width) in shapes.items()},
        num_features,
        source=identity,
        backbone=backbone,
        resize=check_resize(resize),
        force=force,
        resume=True,
        commit_bytes=commit_bytes,
    ) as writer:
        write_json(scan, {"source": identity, "shapes": [[n, *s] for n, s in shapes.items()]})
        missing = [image_id for image_id in files if image_id not in writer.done]

        def copy(image_id: int) -> None:
            tensor = load_tensor(files[image_id])[0]  # (F, h, w)
            writer.write(image_id, tensor.flatten(1).t())

        bar = tqdm(total=len(files), initial=len(files) - len(missing), desc="copy", unit="image")
        with bar:
            for _ in run_threads(copy, missing, num_threads):
                bar.update()
    scan.unlink()
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
        if image_id in files:
            raise ValueError(f"{path} and {files[image_id]} are the same image; keep one of them")
        files[image_id] = path
    if not files:
        raise ValueError(f"{source} holds no <image_id>.pth files")
    return dict(sorted(files.items()))


def fingerprint_files(files: dict[int, Path]) -> str:
    """Hash names, sizes and times: an unfinished store goes on only from the very same files."""
    digest = hashlib.sha256()
    for image_id, path in files.items():
        status = path.stat()
        digest.update(f"{image_id} {status.st_size} {status.st_mtime_ns}\n".encode())
    return f"{len(files)} files {digest.hexdigest()[:12]}"


def scan_shapes(files: dict[int, Path], num_threads: int) -> dict[int, tuple[int, int, int]]:
    """Give {image_id: (F, h, w)}, reading no features."""

    def read(image_id: int) -> tuple[int, tuple[int, int, int]]:
        _, features, height, width = load_tensor(files[image_id]).shape
        return image_id, (features, height, width)

    bar = tqdm(run_threads(read, files, num_threads), total=len(files), desc="scan", unit="image")
    return dict(sorted(bar))


def recall_shapes(scan: Path, identity: str) -> dict[int, tuple[int, int, int]] | None:
    """Give what an interrupted run found in the very same files, or None."""
    try:
        found = read_json(scan)
        if found["source"] == identity:
            return {n: (features, height, width) for n, features, height, width in found["shapes"]}
    except (OSError, ValueError, KeyError, TypeError):
        pass  # nothing usable: the files are scanned
    return None


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
        reason = str(error).split("\n")[0][:120]
        raise ValueError(f"{path} cannot be read as a tensor: {reason}") from None
    if not isinstance(tensor, torch.Tensor) or not tensor.dtype.is_floating_point:
        raise ValueError(f"{path} holds no tensor of floating-point numbers")
    if tensor.dim() != 4 or tensor.shape[0] != 1 or 0 in tensor.shape:
        raise ValueError(f"{path} has shape {list(tensor.shape)}, expected [1, features, h, w]")
    return tensor


def check_features(
    files: dict[int, Path], shapes: dict[int, tuple[int, int, int]], num_features: int
) -> None:
    """Raise when images differ in their number of features."""
    for image_id, (features, _, _) in shapes.items():
        if features != num_features:
            raise ValueError(
                f"{files[image_id]} has {features} features a cell, but "
                f"{files[next(iter(files))]} has {num_features}; all must have the same"
            )


def run_threads(
    work: Callable[[Item], Result], items: Iterable[Item], num_threads: int
) -> Iterator[Result]:
    """Yield work(item) as they finish, a few in flight at a time; the first error ends it."""
    running: set[Future[Result]] = set()
    with ThreadPoolExecutor(num_threads) as pool:
        try:
            for item in items:
                running.add(pool.submit(work, item))
                if len(running) >= 4 * num_threads:
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            for future in running:
                yield future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
