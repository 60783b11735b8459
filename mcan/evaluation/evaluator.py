"""The one evaluator: a model answers a split, and every metric is computed from its answers.

Validation during training and the command `evaluate` are this function.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from data.vqa.accuracy import Scores, score_results
from mcan.evaluation.evaluation_split import EvaluationSplit
from mcan.evaluation.metrics import AnsweredSplit, compute_metrics
from mcan.evaluation.predict import Predictions, predict
from mcan.network.model import MCAN
from mcan.runtime.distributed import World
from mcan.runtime.stop_request import StopRequest, until_stopped


@dataclass(frozen=True)
class Evaluation:
    """What a model answered, and how good that is."""

    metrics: dict[str, Any]  # values that JSON has, as they go into files
    predictions: Predictions
    scores: Scores


def evaluate_split(
    model: MCAN,
    split: EvaluationSplit,
    world: World,
    dtype: torch.dtype,
    stop: StopRequest | None = None,
) -> Evaluation:
    """Answer an annotated split with the test-time head; every process gets the same values.

    A request to stop, where it may come, ends it on all processes with a StoppedOnRequestError.
    """
    start = time.monotonic()
    batches = split.batches(world)
    if stop is not None:
        batches = until_stopped(batches, stop, world)
    predictions = predict(model, batches, world, dtype)
    seconds = time.monotonic() - start
    answers = name_answers(predictions, split.words.answers.words)
    scores = score_results(split.annotations, answers)
    k_max = max(getattr(model.pool_image.head, "k_max", 1), int(predictions.num_components.max()))
    answered = AnsweredSplit(predictions, answers, split.annotations, scores, split.metadata, k_max)
    metrics = {
        **compute_metrics(answered),
        "validation_questions_per_second": round(len(answers) / seconds, 1),
    }
    return Evaluation(metrics, predictions, scores)


def name_answers(predictions: Predictions, words: Sequence[str]) -> dict[int, str]:
    """The answer to each question id, in words."""
    pairs = zip(predictions.question_ids.tolist(), predictions.answers.tolist(), strict=True)
    return {number: words[n] for number, n in pairs}
