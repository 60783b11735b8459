"""From .pth files to a store: ours, and a loop of torch.load and write in one process."""

from functools import partial
from pathlib import Path

import h5py
import numpy as np
import torch
from tqdm import tqdm

from scripts.bench.measurement import Measurement, Part, Row, ratios
from scripts.bench.rival import Rival
from scripts.bench.sample_features import write_store
from scripts.bench.timing import Work, clock


def convert_plainly(folder: Path, output: Path) -> None:
    """One file after the other: load, turn into float16 rows, append to a dataset that grows."""
    paths = sorted(folder.glob("*.pth"), key=lambda path: int(path.stem))
    num_features = torch.load(paths[0], weights_only=True).shape[1]
    with h5py.File(output, "w") as file:
        rows = file.create_dataset(
            "features", (0, num_features), np.float16, maxshape=(None, num_features)
        )
        for path in paths:
            features = (
                torch.load(path, weights_only=True)[0].flatten(1).t().half().numpy()
            )  # (L, F)
            rows.resize(len(rows) + len(features), axis=0)
            rows[-len(features) :] = features


def measure(files: Path, folder: Path, rounds: int) -> Part:
    """The row of converting features; what they write is removed outside of what is timed."""
    output = folder / "converted.h5"
    times: dict[str, list[float]] = {"ours": [], "plain": []}
    with Rival(partial, convert_plainly, files, output) as plain:
        works: dict[str, Work] = {"ours": lambda: write_store(files, output), "plain": plain}
        for number in tqdm(range(rounds + 1), desc="conversion", leave=False):
            for name, work in works.items():
                elapsed = clock(work, torch.device("cpu"))
                output.unlink()
                if number > 0:
                    times[name].append(elapsed)
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
