"""From .pth files to a store: ours, and a loop of torch.load and write in one process."""

from functools import partial
from pathlib import Path

import h5py
import numpy as np
import torch

from benchmarks.baseline_process import BaselineProcess
from benchmarks.measurement import Part, Row, as_measurements, ratios
from benchmarks.sample_features import write_store
from benchmarks.timing import Work, interleave


def convert_plainly(folder: Path, output: Path) -> None:
    """One file after the other: load, turn into float16 rows, append to a dataset that grows."""
    paths = sorted(folder.glob("*.pth"), key=lambda path: int(path.stem))
    num_features = torch.load(paths[0], weights_only=True).shape[1]
    with h5py.File(output, "w") as file:
        shape = None, num_features
        rows = file.create_dataset("features", (0, num_features), np.float16, maxshape=shape)
        for path in paths:
            image = torch.load(path, weights_only=True)[0]  # (F, h, w)
            features = image.flatten(1).t().half().numpy()  # (L, F)
            rows.resize(len(rows) + len(features), axis=0)
            rows[-len(features) :] = features


def measure(files: Path, folder: Path, rounds: int) -> Part:
    """The row of converting features; what is written is removed outside of what is timed."""
    output, count = folder / "converted.h5", len(list(files.iterdir()))
    with BaselineProcess(partial, convert_plainly, files, output) as plain:
        works: dict[str, Work] = {"ours": partial(write_store, files, output), "plain": plain}
        device = torch.device("cpu")
        times = interleave(works, device, rounds, "conversion", clean_up=output.unlink)
    rates = {name: [1000 * count / each for each in taken] for name, taken in times.items()}
    against = "torch.load and write, one process"
    gain = ratios(rates["ours"], rates["plain"])
    return Part(
        [Row("converting features, images/s", against, "≥ 1.5", gain)],
        as_measurements("conversion", rates, "images/s"),
    )
