"""make doctor: look at machine, disk and data with a training's own settings."""

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from omegaconf import DictConfig, OmegaConf

from data.splits import Folder, split_names
from data.store import READERS
from data.words import Words
from mcan import MCAN, count_parameters
from mcan.checkpoint import load_checkpoint
from mcan.cost import SAVED_BYTES, Batch, count_training_step
from scripts.cost.workload import choose_bits
from scripts.doctor.dataset import Dataset, check_dataset
from scripts.doctor.finding import PROBLEM, Finding, catch, good, summarise, wrong
from scripts.doctor.gpus import check_gpus, check_memory, look_at_machine
from scripts.doctor.reading import check_reading
from scripts.doctor.storage import check_file_system, check_runs, check_staging
from scripts.doctor.surroundings import (
    check_compilation,
    check_extras,
    check_limits,
    check_versions,
)
from scripts.entry import command
from scripts.model import build_head, build_model, head_schedules, import_modules

LARGEST_GRID = (19, 32)  # of VQA-v2
WRONG = 1  # exit code where something is to be mended


@command("doctor")
def main(config: DictConfig) -> None:
    """Print every finding as it comes; exit code 1 where there is a problem."""
    check_settings(config)
    import_modules(list(config.modules))
    findings = []
    for finding in examine(config):
        print(finding.lines(), flush=True)
        findings.append(finding)
    print(f"\n{summarise(findings)}")
    if any(finding.level == PROBLEM for finding in findings):
        sys.exit(WRONG)


def check_settings(config: DictConfig) -> None:
    """Raise for what is no setting at all."""
    if config.data.name == "custom" and not config.data.root:
        raise ValueError("data=custom needs the folder of your data: data.root=…")
    for name in ("gpus", "sample_megabytes"):
        if config[name] < 1:
            raise ValueError(f"{name} is {config[name]}, expected at least 1")
    for split in (config.train_split, config.val_split):
        split_names(split)
    choose_bits(config.runtime.precision)
    if config.runtime.reader not in READERS:
        raise ValueError(
            f"runtime.reader is {config.runtime.reader!r}, expected one of {', '.join(READERS)}"
        )


def examine(config: DictConfig) -> Iterator[Finding]:
    """Everything, the quick things first."""
    runtime = config.runtime
    machine = look_at_machine()
    yield from check_versions()
    yield from check_extras(config.figures)
    yield from check_gpus(machine, config.gpus, runtime.device)
    yield from check_limits(config.gpus, runtime.loader_threads)
    if runtime.compile:
        yield from check_compilation(torch.device("cuda" if machine.devices else "cpu"))
    dataset = Dataset(Folder(config.data.root), config.data.name)
    try:
        more_than = config.data.get("answers_more_than", 8)
        yield from check_dataset(
            dataset, config.train_split, config.val_split, runtime.reader, more_than
        )
        yield from check_starting_points(config, dataset)
        if not (runtime.device or "").startswith("cpu"):
            yield from check_memory(machine, count_memory(config, dataset))
        yield from check_disks(config, dataset)
    finally:
        dataset.close()


def check_starting_points(config: DictConfig, dataset: Dataset) -> Iterator[Finding]:
    """GloVe's file and the checkpoint to start from, where they are asked for."""
    if config.glove and not Path(config.glove).is_file():
        yield wrong(
            f"glove={config.glove} is not there", "download and unpack it (docs/cluster.md)"
        )
    elif config.glove:
        yield good(f"word vectors: {config.glove}")
    if config.init_from:

        def check() -> Iterator[Finding]:
            content = load_checkpoint(config.init_from)
            if dataset.words is not None:
                other = Words.from_state(content, config.init_from)
                dataset.words.refuse_other(other, config.init_from, config.data.root)
            yield good(f"{config.init_from} is sound and has the words of this data")

        yield from catch(check, "name another checkpoint, or the data that it was trained on")


def check_disks(config: DictConfig, dataset: Dataset) -> Iterator[Finding]:
    """Where runs are written, and where features are read."""
    keep = config.runtime.keep + 2  # the best one, and one that is just being written
    num_bytes = SAVED_BYTES * count_parameters(make_model(config, dataset))
    yield from check_runs(Path(config.runs), keep * num_bytes, keep)
    stores = {store.path: (split, store) for split, store in dataset.stores.items()}
    if config.runtime.stage_to:
        yield from check_staging(Path(config.runtime.stage_to), list(stores))
    for split, store in stores.values():
        yield from check_file_system(store)
        number = len(dataset.questions.get(split, ()))
        yield from check_reading(
            store, config.sample_megabytes * 10**6, config.runtime.loader_threads, number
        )


def count_memory(config: DictConfig, dataset: Dataset) -> int:
    """Bytes of a GPU that a step on the largest grid takes, counted from the model."""
    grids = [
        (int(store.heights[n]), int(store.widths[n]))
        for store in dataset.stores.values()
        for n in [np.argmax(store.heights * store.widths)]
    ]
    grid = max(grids, key=math.prod, default=LARGEST_GRID)
    runtime = config.runtime
    num_questions = -(-config.optim.batch_size // (config.gpus * runtime.micro_batches))
    step = count_training_step(
        make_model(config, dataset), Batch(num_questions, grid), choose_bits(runtime.precision)
    )
    return step.memory_bytes(config.gpus)


def make_model(config: DictConfig, dataset: Dataset) -> MCAN:
    """The model without numbers, of VQA-v2's sizes where the data is not there yet."""
    options: dict[str, Any] = OmegaConf.to_container(config.attention, resolve=True)  # type: ignore[assignment]
    head = build_head(options, head_schedules(options, config.optim.epochs))
    words, stores = dataset.words, list(dataset.stores.values())
    sizes = {
        "num_words": len(words.vocabulary) if words else 20000,
        "num_answers": len(words.answers) if words else 3129,
        "num_features": stores[0].num_features if stores else 2048,
    }
    with torch.device("meta"):
        return build_model(config.model, head, sizes)


if __name__ == "__main__":
    main()
