"""make doctor: check machine, disk and data with the settings of a training run."""

import math
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import torch

import attention
from attention.heads import registry
from configs.schema.training import Doctor
from data.text.glove import measure_vectors
from data.text.word_lists import Words
from data.vqa.data_folder import DataFolder
from mcan import MCAN, count_parameters
from mcan.checkpoint import load_checkpoint
from mcan.cost.step_cost import CHECKPOINT_BYTES, META, Cost, count_training_step
from mcan.head_schedule import ScheduledHead
from mcan.network.architecture import build_model
from mcan.runtime.loader_threads import choose_loader_threads
from mcan.runtime.precision import choose_dtype
from scripts.cli.command import command
from scripts.doctor.dataset import Dataset, check_dataset
from scripts.doctor.environment import (
    check_compilation,
    check_extras,
    check_limits,
    check_versions,
)
from scripts.doctor.finding import PROBLEM, Finding, catch, ok, problem, summarise
from scripts.doctor.gpus import check_gpus, check_launches, check_memory, inspect_machine
from scripts.doctor.grids import check_fit
from scripts.doctor.read_speed import check_read_speed
from scripts.doctor.storage import check_file_system, check_runs, check_staging

LARGEST_GRID = (19, 32)  # of VQA-v2
EXIT_PROBLEM = 1  # exit code where something must be fixed


@command("doctor")
def main(settings: Doctor) -> None:
    """Print every finding as it comes; exit code 1 where there is a problem."""
    if settings.data.name == "custom" and not settings.data.root:
        raise ValueError("data=custom needs the folder of your data: data.root=…")
    findings = []
    for finding in examine(settings):
        print(finding.lines(), flush=True)
        findings.append(finding)
    print(f"\n{summarise(findings)}")
    if any(finding.level == PROBLEM for finding in findings):
        sys.exit(EXIT_PROBLEM)


def examine(settings: Doctor) -> Iterator[Finding]:
    """All checks, the quick ones first."""
    runtime = settings.runtime
    machine = inspect_machine()
    yield from check_versions()
    yield from check_extras(settings.figures)
    yield from check_gpus(machine, settings.gpus, runtime.device)
    if runtime.compile:
        device = torch.device("cuda" if machine.devices else "cpu")
        advice = "install a compiler, or leave runtime.compile=false"
        yield from catch(check_compilation(device), advice)
    folder = DataFolder(settings.data.root, settings.data.layout)
    with closing(Dataset(folder, settings.data.name)) as dataset:
        min_count = settings.data.min_answer_count
        yield from check_dataset(
            dataset, settings.train_split, settings.val_split, runtime.reader, min_count
        )
        yield from check_limits(settings.gpus, runtime, dataset.image_bytes)
        yield from check_head(settings, dataset)
        yield from check_initial_weights(settings, dataset)
        if not (runtime.device or "").startswith("cpu"):
            step = count_step(settings, dataset)
            yield check_memory(machine, step.memory_bytes)
            if not runtime.compile:
                share = -(-settings.optim.batch_size // settings.gpus)
                dtype = choose_dtype(runtime.precision, META)
                yield from check_launches(machine, step, share, dtype)
        yield from check_disks(settings, dataset)


def check_head(settings: Doctor, dataset: Dataset) -> Iterator[Finding]:
    """A head that reads where cells are needs features of a grid."""
    name = settings.attention["name"]
    for store in dataset.stores.values():
        if registry.find(name).uses_positions and not store.manifest.is_grid:
            text = f"{store.path} holds regions, which form no grid, and {name} attention needs one"
            yield problem(text, "attention=discrete, or features of a grid")
    yield from check_fit(build_head(settings), dataset.stores)


def check_initial_weights(settings: Doctor, dataset: Dataset) -> Iterator[Finding]:
    """GloVe's file and the checkpoint to start from, where they are asked for."""
    vectors = settings.word_vectors
    if vectors and not Path(vectors).is_file():
        advice = (
            "name another file with glove=<file>, or glove=none; "
            'make data DATA=vqa_v2 ARGS="data.glove=true" downloads glove.840B.300d.txt'
        )
        yield problem(f"there are no word vectors {vectors}", advice)
    elif vectors:
        advice = "name an unpacked text file of GloVe's with glove=<file>, or glove=none"
        yield from catch(check_vectors(vectors, settings.model.embedding), advice)
    if settings.init_from:
        advice = "name another checkpoint, or the data that it was trained on"
        yield from catch(check_checkpoint(settings.init_from, dataset), advice)


def check_vectors(path: str, expected: int) -> Iterator[Finding]:
    """Word vectors of as many numbers as the model takes."""
    width = measure_vectors(path)
    if width == expected:
        yield ok(f"word vectors: {path}, {width} numbers each")
    else:
        text = f"{path} has vectors of {width} numbers and the model takes {expected}"
        yield problem(text, f"model.embedding={width}")


def check_checkpoint(path: str, dataset: Dataset) -> Iterator[Finding]:
    """A checkpoint that can be read and knows the words of the data."""
    content = load_checkpoint(path)
    if dataset.words is not None:
        dataset.words.check_same(Words.from_state(content, path), path, str(dataset.folder.root))
    yield ok(f"{path} is valid and has the words of this data")


def check_disks(settings: Doctor, dataset: Dataset) -> Iterator[Finding]:
    """Where runs are written, and where features are read."""
    runtime = settings.runtime
    keep = runtime.keep + 2  # the best one, and one that is just being written
    num_bytes = CHECKPOINT_BYTES * count_parameters(make_model(settings, dataset))
    advice = "choose a folder with enough space that you may write to: runs=…"
    yield from catch(check_runs(Path(settings.runs), keep * num_bytes, keep), advice)
    stores = {store.path: (split, store) for split, store in dataset.stores.items()}
    if runtime.stage_to:
        advice = "name a local disk with more space, or leave runtime.stage_to=null"
        yield from catch(check_staging(Path(runtime.stage_to), list(stores)), advice)
    for split, store in stores.values():
        yield from check_file_system(store)
        number = len(dataset.questions.get(split, ()))
        sample = settings.sample_megabytes * 10**6
        threads = choose_loader_threads(runtime, dataset.image_bytes, settings.gpus)
        yield from check_read_speed(store, sample, threads, number)


def count_step(settings: Doctor, dataset: Dataset) -> Cost:
    """What a step on the largest grid takes of a GPU, counted from the model."""
    grids = {
        grid
        for store in dataset.stores.values()
        for grid in zip(store.heights.tolist(), store.widths.tolist(), strict=True)
    }
    grid = max(grids, key=math.prod, default=LARGEST_GRID)
    runtime = settings.runtime
    return count_training_step(
        make_model(settings, dataset),
        settings.optim.batch_size,
        grid,
        settings.data.question_length,
        choose_dtype(runtime.precision, META),
        settings.gpus,
        runtime.micro_batches,
    )


def build_head(settings: Doctor) -> attention.Head:
    """The head as it is in the last epoch."""
    return ScheduledHead(settings.attention, settings.optim.epochs).build()


def make_model(settings: Doctor, dataset: Dataset) -> MCAN:
    """The model without numbers, of VQA-v2's sizes where the data is not there yet."""
    words, stores = dataset.words, list(dataset.stores.values())
    sizes = {
        "num_words": len(words.vocabulary) if words else 20000,
        "num_answers": len(words.answers) if words else 3129,
        "num_features": stores[0].num_features if stores else 2048,
    }
    with torch.device("meta"):
        return build_model(settings.model, build_head(settings), **sizes)


if __name__ == "__main__":
    main()
