"""From .pth files to a store: ours, and a loop of torch.load and write in one process."""

from pathlib import Path

import h5py
import numpy as np
import torch

from scripts.bench.measurement import Measurement, Part, Row, ratios
from scripts.bench.sample_features import write_store
from scripts.bench.timing import interleave


def convert_plainly(folder: Path, output: Path) -> None:
    """One file after the other: load, turn into float16 rows, append to a dataset.

    A first loop learns how many rows there will be, as any writer of one dataset must.
    """
    paths = sorted(folder.glob("*.pth"), key=lambda path: int(path.stem))
    shapes = [torch.load(path).shape for path in paths]
    num_cells = sum(height * width for _, _, height, width in shapes)
    with h5py.File(output, "w") as file:
        rows = file.create_dataset("features", (num_cells, shapes[0][1]), dtype=np.float16)
        start = 0
        for path in paths:
            features = torch.load(path)[0].flatten(1).t().half().numpy()  # (L, F)
            rows[start : start + len(features)] = features
            start += len(features)


def measure(files: Path, folder: Path, rounds: int) -> Part:
    """The row of converting features; both write beside each other and replace their last file."""
    ours, plain = folder / "ours.h5", folder / "plain.h5"

    def convert() -> None:
        ours.unlink(missing_ok=True)
        write_store(files, ours)

    times = interleave(
        {"ours": convert, "plain": lambda: convert_plainly(files, plain)},
        torch.device("cpu"),
        rounds,
        "conversion",
    )
    ours.unlink()
    plain.unlink()
    count = len(list(files.iterdir()))
    return Part(
        [
            Row(
                "converting features, images/s",
                "torch.load and write, one process",
                "≥ 1.5",
                ratios(times["plain"], times["ours"]),
            )
        ],
        [
            Measurement(
                f"conversion: {name}",
                tuple(1000 * count / each for each in times[name]),
                "images/s",
            )
            for name in times
        ],
    )
