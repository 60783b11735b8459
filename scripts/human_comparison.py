"""Trained models look at the questions that people have looked at; what comes of comparing them."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from omegaconf import DictConfig
from tqdm import tqdm

from data.controls import derange
from data.examples import build_examples
from data.human_attention import LookedAt, find_answer_types, list_looked_at
from data.human_comparison import Attention, HumanComparison
from data.human_maps import HumanMap, HumanMaps, LookedAtQuestions, read_question, stack_maps
from data.questions import Questions
from data.splits import Folder
from data.store_set import StoreSet, open_stores
from data.yardstick import compare_attention
from mcan.attention_maps import map_attention
from mcan.precision import choose_dtype
from mcan.processes import World
from scripts.dataset import Split
from scripts.trained import Trained
from scripts.validation import iterate_split


def compare(
    models: Sequence[Trained],
    folder: Folder,
    split: str,
    world: World,
    runtime: DictConfig,
    *,
    num_resamples: int = 2000,
    seed: int = 0,
    blur: float = 1.0,
) -> HumanComparison:
    """Hold the models' attention against the human maps of a split; all processes get the result.

    `blur` is the deviation, in cells, of the Gaussian that discrete attention is also blurred with.
    """
    if not (math.isfinite(blur) and blur > 0):
        raise ValueError(f"blur is {blur}, expected a number of cells above 0")
    looked = list_looked_at(folder, split)
    stores = open_stores(folder.stores(split), runtime.reader, runtime.stage_to)
    for model in models:
        model.refuse_features(
            stores.num_features, stores.stores[0].manifest.backbone, stores.names()
        )
    questions = describe_questions(folder, split, looked, stores, seed)
    maps = read_maps(looked, questions, folder.human_maps(split), world, runtime.show_progress)
    attentions = [
        look_at_questions(model, name, looked, stores, questions, world, runtime)
        for model, name in zip(models, name_models(models), strict=True)
    ]
    return compare_attention(
        questions, maps, attentions, num_resamples=num_resamples, seed=seed, deviation=blur
    )


def describe_questions(
    folder: Folder, split: str, looked: list[LookedAt], stores: StoreSet, seed: int
) -> LookedAtQuestions:
    """The questions as arrays; an image without features is named before anything is done."""
    image_ids = np.array([each.image_id for each in looked])
    return LookedAtQuestions(
        np.array([each.question_id for each in looked]),
        image_ids,
        stores.shapes(image_ids),
        find_answer_types(folder, split, looked),
        derange(image_ids, seed),
    )


def read_maps(
    looked: list[LookedAt],
    questions: LookedAtQuestions,
    source: object,
    world: World,
    show_progress: bool,
) -> HumanMaps:
    """All maps, each read by one process; a broken one ends all processes alike."""
    found: list[HumanMap | None] = []
    problem = None
    bar = tqdm(
        range(world.rank, len(looked), world.size),
        desc="human maps",
        unit="question",
        disable=not (show_progress and world.is_first),
    )
    try:
        for number in bar:
            found += read_question(number, looked[number], questions)
    except ValueError as error:
        problem = str(error)
    parts = world.gather((found, problem))
    for _, problem in parts:
        if problem is not None:
            raise ValueError(problem)
    return stack_maps([each for part, _ in parts for each in part], questions.num_cells, source)


def look_at_questions(
    model: Trained,
    name: str,
    looked: list[LookedAt],
    stores: StoreSet,
    questions: LookedAtQuestions,
    world: World,
    runtime: DictConfig,
) -> Attention:
    """One model's attention to all questions, asked in the words of VQA v1."""
    asked = Questions(questions.ids, questions.image_ids, [each.text for each in looked], "")
    examples = build_examples(asked, None, model.words.vocabulary, model.words.answers)
    pin = world.device.type == "cuda"
    loader = Split(examples, stores).loader(model.words, runtime, pin, share_images=True)
    batches = iterate_split(
        loader, runtime.evaluation_batch_size, runtime.mixing, world, runtime.show_progress
    )
    dtype = choose_dtype(runtime.precision, world.device)
    try:
        maps = map_attention(model.model, batches, questions.num_cells, world, dtype)
    except ValueError as error:
        raise ValueError(f"{model.path}: {error}") from None
    assert np.array_equal(maps.question_ids.numpy(), questions.ids)
    head = model.options["name"]
    return Attention(name, head, maps.cells.numpy(), maps.num_components.numpy())


def name_models(models: Sequence[Trained]) -> list[str]:
    """A name for each: its run's, with the checkpoint's where a run has several."""
    paths = Counter(model.path.resolve() for model in models)
    path, count = paths.most_common(1)[0]
    if count > 1:
        raise ValueError(f"{path} is named {count} times; name each checkpoint once")
    runs = Counter(model.name for model in models)
    names = [
        model.name if runs[model.name] == 1 else f"{model.path.parent.name}-{model.path.stem}"
        for model in models
    ]
    if len(set(names)) < len(names):  # runs of one name in different folders
        return [str(model.path) for model in models]
    return names
