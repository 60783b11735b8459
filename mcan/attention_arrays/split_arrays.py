"""The attention of a model to the questions of a split, written to one HDF5 file."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from tqdm import tqdm

from data.backbones.weights import hash_weights
from data.batching.device_copies import copy_ahead
from data.batching.examples import build_examples
from data.batching.loader import Loader
from data.batching.sampler import MicroBatch, evaluation_batches
from data.io.array_file import ArrayFileWriter, RowArray
from data.vqa.data_folder import DataFolder
from data.vqa.questions import Questions
from mcan.attention_arrays.batch_arrays import ArrayReader
from mcan.evaluation.evaluation_split import choose_batch_size, make_loader, open_features
from mcan.evaluation.trained_model import TrainedModel
from mcan.runtime.distributed import World
from mcan.runtime.precision import choose_dtype
from mcan.runtime.settings import Runtime

VERSION = 1  # of the layout that docs/attention_arrays.md describes


@dataclass(frozen=True)
class ArrayOptions:
    """What is kept of every question."""

    layers: tuple[str, ...] = ()  # names of mcan.attention_arrays.layers
    layer_dtype: Literal["float16", "float32"] = "float16"
    num_answers: int = 5  # the likeliest


@dataclass(frozen=True)
class AskedQuestions:
    """The questions to ask a model, and in which batches: that depends on the questions alone."""

    folder: DataFolder
    split: str
    questions: Questions
    loader: Loader
    batches: list[MicroBatch]


def open_questions(
    folder: DataFolder,
    split: str,
    question_ids: Sequence[int],
    trained: TrainedModel,
    runtime: Runtime,
    device: torch.device,
) -> AskedQuestions:
    """The questions of a split, or those of it that are named, with their features."""
    trained.check_words(folder)
    questions = folder.read_questions(split)
    if question_ids:
        questions = questions.take(questions.find(question_ids))
    if not len(questions):
        raise ValueError(f"{split} has no questions")
    stores = open_features(folder, split, [trained], runtime)
    examples = build_examples(questions, None, trained.words)
    loader = make_loader(examples, stores, trained.words, runtime, device)
    size = choose_batch_size(runtime, [trained])
    batches = evaluation_batches(questions.image_ids, loader.shapes, size, mixing=runtime.mixing)
    return AskedQuestions(folder, split, questions, loader, batches)


def write_attention(
    path: Path,
    trained: TrainedModel,
    asked: AskedQuestions,
    options: ArrayOptions,
    runtime: Runtime,
    world: World,
    force: bool = False,
) -> None:
    """Write all arrays; what the same call wrote before it was ended is kept."""
    loader, num_answers = asked.loader, min(options.num_answers, len(trained.words.answers))
    reader = ArrayReader(
        trained,
        world,
        choose_dtype(runtime.precision, world.device),
        int(loader.shapes.prod(axis=1).max()),
        num_answers,
        options.layers,
        getattr(torch, options.layer_dtype),
    )
    arrays = find_arrays(reader, asked)
    known = describe_questions(trained, asked)
    identity = describe_contents(reader, asked)
    with (
        ArrayFileWriter(path, arrays, known, identity, force) as file,
        tqdm(
            total=len(asked.questions),
            desc="attention",
            unit="question",
            disable=not runtime.show_progress,
        ) as bar,
    ):
        checksums = [zlib.crc32(batch.rows.tobytes()) for batch in asked.batches]
        missing = [n for n, checksum in enumerate(checksums) if file.done.get(n) != checksum]
        bar.update(len(asked.questions) - sum(len(asked.batches[n].rows) for n in missing))
        batches = loader.iterate([asked.batches[n] for n in missing])
        for number, batch in zip(missing, copy_ahead(batches, world.device), strict=True):
            rows = asked.batches[number].rows
            reader.read(batch, rows, file.write)
            file.commit(number, checksums[number])
            bar.update(len(rows))


def find_arrays(reader: ArrayReader, asked: AskedQuestions) -> dict[str, RowArray]:
    """The shape and dtype of every array, from what the model gives for one question."""
    found: dict[str, RowArray] = {}

    def measure(name: str, rows: np.ndarray, values: np.ndarray) -> None:
        found[name] = RowArray((len(asked.questions), *values.shape[1:]), values.dtype)

    first = asked.batches[0].rows[:1]
    for batch in asked.loader.iterate([MicroBatch(first, 1.0)]):
        reader.read(batch, first, measure)
    return found


def describe_questions(
    trained: TrainedModel, asked: AskedQuestions
) -> dict[str, np.ndarray | list[str]]:
    """What is known before the model runs: the questions, and the words that numbers stand for."""
    examples = asked.loader.examples
    return {
        "question_ids": examples.question_ids,
        "image_ids": examples.image_ids,
        "questions": asked.questions.texts,
        "tokens": examples.tokens,
        "grid": asked.loader.shapes,
        "vocabulary": list(trained.words.vocabulary.words),
        "answer_list": list(trained.words.answers.words),
    }


def describe_contents(reader: ArrayReader, asked: AskedQuestions) -> dict[str, Any]:
    """What the file is about: with other values, it would be another file."""
    trained = reader.trained
    weights = {name: value.cpu() for name, value in trained.model.state_dict().items()}
    examples, stores = asked.loader.examples, asked.loader.stores.stores
    return {
        "version": VERSION,
        "checkpoint": str(trained.path.resolve()),
        "weights": hash_weights(weights),
        "head": str(trained.options["name"]),
        "options": trained.options,
        "data": str(asked.folder.root.resolve()),
        "split": asked.split,
        "questions_checksum": f"{zlib.crc32(examples.question_ids.tobytes()):08x}",
        "features": [store.manifest.checksum for store in stores],
        "precision": str(reader.dtype).removeprefix("torch."),
        "num_answers": reader.num_answers,
        "layers": list(reader.layers),
        "layer_dtype": str(reader.layer_dtype).removeprefix("torch."),
    }
