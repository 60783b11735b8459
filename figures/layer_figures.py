"""Figures of a layer: how much the cells of an image attend to each word of the question."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from data.batching.batch import Batch
from data.text.tokenizer import tokenize
from figures.attention_samples import AttentionSample
from figures.captions import show_percent
from figures.comparison_figures import describe_accuracy, make_content
from figures.drawing.figure import FigureContent
from figures.drawing.panel import Panel
from figures.illustrated_split import IllustratedSplit
from mcan.attention_arrays.layers import choose_layers, watch_layers
from mcan.evaluation.evaluation_split import iterate_questions
from mcan.evaluation.predict import attend
from mcan.evaluation.trained_model import TrainedModel
from mcan.runtime.distributed import World
from mcan.runtime.precision import choose_dtype
from mcan.runtime.settings import Runtime

NO_WORD = "(no word)"  # what a question without words is read as


@dataclass(frozen=True)
class WordMaps:
    """The last guided attention to a question, on average over its heads.

    maps (T, h, w) float64: the share of each cell's attention that goes to each of the words; they
    sum to 1 over the words.
    """

    words: tuple[str, ...]
    maps: np.ndarray


def collect_word_maps(
    trained: TrainedModel, split: IllustratedSplit, question_ids: Sequence[int], runtime: Runtime
) -> dict[int, WordMaps]:
    """The maps of some questions by their ids, from this process alone."""
    questions = split.questions.take(split.questions.find(question_ids))
    texts = dict(zip(questions.ids.tolist(), questions.texts, strict=True))
    world = World(0, 1, next(trained.model.parameters()).device)
    dtype = choose_dtype(runtime.precision, world.device)
    found = {}
    for batch in iterate_questions(questions, split.stores, trained, runtime, world):
        weights = average_heads(trained, batch, world, dtype).double().cpu().numpy()
        ids, sizes = batch.question_ids.tolist(), batch.question_sizes()
        for number, (height, width), of_question in zip(ids, sizes, weights, strict=True):
            words = tokenize(texts[number])[: trained.words.question_length] or [NO_WORD]
            maps = of_question[: height * width, : len(words)].T.reshape(-1, height, width)
            found[number] = WordMaps(tuple(words), maps)
    return found


@torch.inference_mode()
def average_heads(trained: TrainedModel, batch: Batch, world: World, dtype: torch.dtype) -> Tensor:
    """(b, L, T): the guided attention of the decoder's last layer, on average over its heads."""
    parts: list[Tensor] = []

    def keep(name: str, rows: slice, weights: Tensor) -> None:
        parts.append(weights.mean(1))

    last = choose_layers(trained.model, "decoder")[-1]
    with watch_layers(trained.model, [last], keep, batch.image_index):
        attend(trained.model, batch, world, dtype)
    return torch.cat(parts)


def compare_words(
    split: IllustratedSplit, name: str, sample: AttentionSample, of_words: WordMaps
) -> FigureContent:
    """One question and one model: the pooled attention, then each word's share of every cell."""
    notes = describe_accuracy(split, sample.question_id, sample.prediction)
    panels = [
        Panel("image"),
        Panel(f"{name}, pooled", sample.cells, sample.mixture, tuple(notes)),
    ]
    peak = float(of_words.maps.max())
    for word, cells in zip(of_words.words, of_words.maps, strict=True):
        shares = f"{show_percent(cells.mean())} on average, at most {show_percent(cells.max())}"
        panels.append(Panel(word, cells, notes=(shares,), peak=peak))
    caption = (
        "A word's panel shows the share of each cell's attention that goes to the word in the last "
        "guided attention, on average over its heads. A cell's shares sum to 1 over the words, "
        f"which have one scale: its peak is {show_percent(peak)}."
    )
    return make_content(split, sample.question_id, panels, caption)
