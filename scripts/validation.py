"""Validation: the test-time head over a whole split, scored by the official accuracy."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from tqdm import tqdm

from data.accuracy import Scores, score_results
from data.batch import Batch
from data.batches import evaluation_pieces
from data.loader import Loader
from data.questions import Annotation
from mcan import MCAN
from mcan.prediction import Predictions, predict
from mcan.processes import World


@dataclass(frozen=True)
class Validation:
    """A split to validate on; all processes take part, and all get the same metrics."""

    loader: Loader
    annotations: list[Annotation]
    answers: list[str]
    batch_size: int
    mixing: str

    def run(self, model: MCAN, world: World, dtype: torch.dtype) -> dict[str, Any]:
        """Accuracy overall and by answer type, shares of K*, and the speed."""
        start = time.monotonic()
        predictions = self.predict(model, world, dtype)
        seconds = time.monotonic() - start
        scores = self.score(predictions)
        return {
            "accuracy": scores.overall,
            "accuracy_by_type": scores.per_answer_type,
            **describe_components(predictions),
            "validation_questions_per_second": round(len(self.annotations) / seconds, 1),
        }

    def predict(self, model: MCAN, world: World, dtype: torch.dtype) -> Predictions:
        """Every question's answer, whatever the number of processes."""
        batches = iterate_split(self.loader, self.batch_size, self.mixing, world)
        return predict(model, batches, world, dtype)

    def score(self, predictions: Predictions) -> Scores:
        """The official accuracy of the predictions."""
        return score_results(self.annotations, name_answers(predictions, self.answers))


def iterate_split(
    loader: Loader, batch_size: int, mixing: str, world: World, show_progress: bool = False
) -> Iterator[Batch]:
    """This process's batches of a split, with a bar over them where it is asked for."""
    pieces = evaluation_pieces(
        loader.examples.image_ids, loader.shapes, batch_size, world.rank, world.size, mixing
    )
    with tqdm(
        total=sum(len(piece.rows) for piece in pieces),
        desc="answering",
        unit="question",
        disable=not (show_progress and world.is_first),
    ) as bar:
        for batch in loader.iterate(pieces):
            yield batch
            bar.update(len(batch.question_ids))


def name_answers(predictions: Predictions, answers: list[str] | tuple[str, ...]) -> dict[int, str]:
    """The answer to each question id, in words."""
    pairs = zip(predictions.question_ids.tolist(), predictions.answers.tolist(), strict=True)
    return {number: answers[n] for number, n in pairs}


def describe_components(predictions: Predictions) -> dict[str, Any]:
    """Counts and shares of K*, and the share of collapsed components; nothing for discrete."""
    num_components = predictions.num_components
    if not bool((num_components > 0).all()):
        return {}
    counts = num_components.bincount()[1:].tolist()
    total = len(num_components)
    return {
        "component_counts": counts,
        "component_shares": " / ".join(f"{100 * count / total:.1f}" for count in counts) + " %",
        "collapsed_share": round(
            int(predictions.num_collapsed.sum()) / int(num_components.sum()), 4
        ),
    }
