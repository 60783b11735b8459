"""The attention of trained models compared with that of people, on the questions of VQA-HAT."""

import math
from collections.abc import Sequence

import numpy as np
from tqdm import tqdm

from data.features.store_set import StoreSet
from data.human_attention.comparison import Attention, HumanComparison, compare_attention
from data.human_attention.map_arrays import (
    HumanMap,
    HumanMaps,
    MappedQuestions,
    read_question,
    stack_maps,
)
from data.human_attention.vqa_hat import MappedQuestion, find_answer_types, list_mapped_questions
from data.vqa.data_folder import DataFolder
from data.vqa.derangement import derange
from data.vqa.questions import Questions
from mcan.evaluation.attention_maps import map_attention
from mcan.evaluation.evaluation_split import iterate_questions, open_features
from mcan.evaluation.trained_model import TrainedModel, label_models
from mcan.runtime.distributed import World
from mcan.runtime.precision import choose_dtype
from mcan.runtime.settings import Runtime


def compare(
    models: Sequence[TrainedModel],
    folder: DataFolder,
    split: str,
    world: World,
    runtime: Runtime,
    *,
    num_resamples: int = 2000,
    seed: int = 0,
    blur: float = 1.0,
) -> HumanComparison:
    """Compare the models' attention with the human maps of a split; all processes get the result.

    `blur` is the deviation, in cells, of the Gaussian that discrete attention is also blurred with.
    """
    if not (math.isfinite(blur) and blur > 0):
        raise ValueError(f"blur is {blur}, expected a number of cells above 0")
    mapped = list_mapped_questions(folder, split)
    stores = open_features(folder, split, models, runtime)
    stores.require_grid("people's attention is compared on one")
    questions = describe_questions(folder, split, mapped, stores, seed)
    maps = read_maps(mapped, questions, folder.human_maps(split), world, runtime.show_progress)
    attentions = [
        attend_questions(model, name, mapped, questions, stores, runtime, world)
        for model, name in zip(models, label_models(models), strict=True)
    ]
    return compare_attention(
        questions, maps, attentions, num_resamples=num_resamples, seed=seed, deviation=blur
    )


def describe_questions(
    folder: DataFolder, split: str, mapped: list[MappedQuestion], stores: StoreSet, seed: int
) -> MappedQuestions:
    """The questions as arrays; an image without features is named before anything is done."""
    image_ids = np.array([each.image_id for each in mapped])
    return MappedQuestions(
        np.array([each.question_id for each in mapped]),
        image_ids,
        stores.shapes(image_ids),
        find_answer_types(folder, split, mapped),
        derange(image_ids, seed),
    )


def read_maps(
    mapped: list[MappedQuestion],
    questions: MappedQuestions,
    source: object,
    world: World,
    show_progress: bool,
) -> HumanMaps:
    """All maps, each read by one process; a broken one ends all processes alike."""
    found: list[HumanMap | None] = []
    problem = None
    bar = tqdm(
        range(world.rank, len(mapped), world.size),
        desc="human maps",
        unit="question",
        disable=not (show_progress and world.is_first),
    )
    try:
        for number in bar:
            found += read_question(number, mapped[number], questions)
    except ValueError as error:
        problem = str(error)
    parts = world.gather((found, problem))
    for _, problem in parts:
        if problem is not None:
            raise ValueError(problem)
    return stack_maps([each for part, _ in parts for each in part], questions.num_cells, source)


def attend_questions(
    trained: TrainedModel,
    name: str,
    mapped: list[MappedQuestion],
    questions: MappedQuestions,
    stores: StoreSet,
    runtime: Runtime,
    world: World,
) -> Attention:
    """One model's attention to all questions, asked in the words of VQA v1."""
    asked = Questions(questions.ids, questions.image_ids, [each.text for each in mapped], "")
    batches = iterate_questions(asked, stores, trained, runtime, world)
    dtype = choose_dtype(runtime.precision, world.device)
    try:
        maps = map_attention(trained.model, batches, questions.num_cells, world, dtype)
    except ValueError as error:
        raise ValueError(f"{trained.path}: {error}") from None
    assert np.array_equal(maps.question_ids.numpy(), questions.ids)
    cells, num_components = maps.cells.numpy(), maps.num_components.numpy()
    return Attention(name, trained.head_name, cells, num_components)
