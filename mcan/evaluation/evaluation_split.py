"""The questions of a split, ready to be answered by models of one vocabulary."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from tqdm import tqdm

from data.batching.batch import Batch
from data.batching.device_copies import copy_ahead
from data.batching.examples import Examples, build_examples
from data.batching.loader import Loader
from data.batching.sampler import evaluation_batches, spread_rows
from data.features.store_set import StoreSet, open_stores
from data.shapes.metadata import QuestionMetadata, read_question_metadata
from data.text.word_lists import Words
from data.vqa.data_folder import DataFolder
from data.vqa.derangement import derange
from data.vqa.questions import Annotation, Questions, keep_annotations, match_annotations
from mcan.evaluation.trained_model import TrainedModel
from mcan.runtime.distributed import World
from mcan.runtime.loader_threads import choose_loader_threads
from mcan.runtime.memory import explain_batch
from mcan.runtime.settings import EVALUATION_BATCH_SIZE, Runtime


@dataclass(frozen=True)
class EvaluationSplit:
    """A split, or a combination of some, with the loader of its questions."""

    folder: DataFolder
    name: str
    words: Words
    loader: Loader
    runtime: Runtime
    batch_size: int  # questions
    annotations: Sequence[Annotation] = ()  # none where the split has none
    metadata: Mapping[int, QuestionMetadata] = field(default_factory=dict)

    @property
    def question_ids(self) -> np.ndarray:
        """(Q,): the ids of the questions, in the order of their files."""
        return self.loader.examples.question_ids

    def batches(self, world: World) -> Iterator[Batch]:
        """This process's batches; which questions share one depends on the split alone."""
        return iterate_split(self.loader, self.batch_size, self.runtime, world)


def open_evaluation_split(
    folder: DataFolder,
    name: str,
    words: Words,
    runtime: Runtime,
    device: torch.device,
    *,
    models: Sequence[TrainedModel] = (),
    annotated: bool = True,
    other_images: bool = False,
    limit_batches: int | None = None,
) -> EvaluationSplit:
    """Read a split's files and open its stores; `models` are to answer it, and must fit them.

    `other_images` shows every question the image of another one: what a model then gets right, it
    knows without looking. `limit_batches` keeps the questions of at most so many batches.
    """
    batch_size = choose_batch_size(runtime, models)
    for model in models:
        model.check_words(folder)
    questions = folder.read_questions(name)
    annotations = folder.read_annotations(name) if annotated else None
    stores = open_features(folder, name, models, runtime)
    if limit_batches is not None:
        questions = limit_questions(questions, stores, batch_size, limit_batches, runtime.mixing)
        annotations = keep_annotations(annotations, questions.ids)
    if annotations is not None:
        match_annotations(questions, annotations)  # raises where they belong to other questions
    examples = build_examples(questions, None, words)  # answers are scored, not trained on
    if other_images:
        partners = derange(examples.image_ids)
        examples = replace(examples, image_ids=examples.image_ids[partners])
    loader = make_loader(examples, stores, words, runtime, device)
    metadata = read_question_metadata(folder) if annotated else {}
    return EvaluationSplit(
        folder, name, words, loader, runtime, batch_size, annotations or (), metadata
    )


def limit_questions(
    questions: Questions, stores: StoreSet, batch_size: int, limit: int, mixing: str
) -> Questions:
    """The questions of at most `limit` batches, from small grids to large ones."""
    shapes = stores.shapes(questions.image_ids)
    rows = spread_rows(questions.image_ids, shapes, batch_size, limit, mixing)
    return questions.take(rows)


def choose_batch_size(runtime: Runtime, models: Sequence[TrainedModel]) -> int:
    """The questions in a batch: as set, or that of the models whose K* depends on it."""
    if runtime.evaluation_batch_size is not None:
        return runtime.evaluation_batch_size
    sizes = {model.batch_size: model.path for model in models if model.batch_size is not None}
    if len(sizes) > 1:
        own = " and ".join(f"{size} of {path}" for size, path in sizes.items())
        raise ValueError(
            f"with selection=batch, K* depends on the batch, and the models' own batch sizes "
            f"differ ({own}); choose one with runtime.evaluation_batch_size=…"
        )
    return next(iter(sizes), EVALUATION_BATCH_SIZE)


def open_features(
    folder: DataFolder, split: str, models: Sequence[TrainedModel], runtime: Runtime
) -> StoreSet:
    """The feature stores of a split, which must fit the models."""
    stores = open_stores(folder.stores(split), runtime.reader, runtime.stage_to)
    for model in models:
        model.check_features(stores)
    return stores


def make_loader(
    examples: Examples, stores: StoreSet, words: Words, runtime: Runtime, device: torch.device
) -> Loader:
    """A loader for evaluation, which reads each image once for all its questions."""
    return Loader(
        stores,
        examples,
        len(words.answers),
        share_images=True,
        num_threads=choose_loader_threads(runtime, stores.image_bytes),
        keep=2,
        pin=device.type == "cuda",
    )


def iterate_questions(
    questions: Questions, stores: StoreSet, trained: TrainedModel, runtime: Runtime, world: World
) -> Iterator[Batch]:
    """This process's batches of any questions, with or without known answers, for a model."""
    examples = build_examples(questions, None, trained.words)
    loader = make_loader(examples, stores, trained.words, runtime, world.device)
    return iterate_split(loader, choose_batch_size(runtime, [trained]), runtime, world)


def iterate_split(
    loader: Loader, batch_size: int, runtime: Runtime, world: World
) -> Iterator[Batch]:
    """This process's batches of a split on its device, with a bar over them if it is asked for."""
    micro_batches = evaluation_batches(
        loader.examples.image_ids,
        loader.shapes,
        batch_size,
        world.rank,
        world.size,
        runtime.mixing,
    )
    bar = tqdm(
        total=sum(len(each.rows) for each in micro_batches),
        desc="answering",
        unit="question",
        disable=not (runtime.show_progress and world.is_first),
    )
    with bar, explain_batch(batch_size):  # where copies of batches do not fit
        for batch in copy_ahead(loader.iterate(micro_batches), world.device):
            yield batch
            bar.update(len(batch.question_ids))
