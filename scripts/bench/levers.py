"""What each lever is worth: the same work with one of them switched off."""

import contextlib
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch

import mcan
from data.batch import Batch
from data.batches import evaluation_pieces
from mcan import dropout, dropped_attention
from mcan.dense import Dense
from mcan.layers import GuidedAttention
from mcan.prediction import predict
from scripts.bench.evaluation import OurEvaluation, contestants
from scripts.bench.measurement import Measurement, Part, ratios
from scripts.bench.sample_features import draw_shapes
from scripts.bench.timing import Work, interleave
from scripts.bench.training import MOST_CELLS, SMALL, Asked, OurSteps, make_batch

GRID, LARGEST = (19, 25), (19, 32)  # of VQA-v2: the most frequent one, and 608 cells


def never(*_: object) -> bool:
    return False


@dataclass(frozen=True)
class TrainingLevers:
    """One model and its steps, with or without a lever."""

    steps: OurSteps
    uniform: list[Asked]
    mixed: list[Asked]

    def step(self, *without: contextlib.AbstractContextManager[object]) -> None:
        """A step on a batch of one grid."""
        self.steps.batches = self.uniform
        with contextlib.ExitStack() as stack:
            for lever in without:
                stack.enter_context(lever)
            self.steps()

    def step_padded(self) -> None:
        """A step on a mixed batch, padded to the most cells there are."""
        self.steps.batches = self.mixed
        self.steps()

    def works(self) -> dict[str, Work]:
        cheap = "draws_cheaply"
        return {
            "all": self.step,
            "batches of one grid (padded to 608 instead)": self.step_padded,
            "cheap dropout (torch's own instead)": lambda: self.step(
                patch.object(dropout, cheap, never), patch.object(dropped_attention, cheap, never)
            ),
            "words folded into projections": lambda: self.step(
                patch.object(GuidedAttention, "_pays", never)
            ),
        }


@dataclass(frozen=True)
class EvaluationLevers:
    """Answers to one batch, with or without a lever."""

    ours: OurEvaluation
    batch: Batch

    def answer(self, batch: Batch) -> None:
        predict(self.ours.model, [batch], self.ours.world, torch.float32)

    def answer_alone(self) -> None:
        """Every question with an image of its own."""
        self.answer(
            replace(
                self.batch,
                features=self.batch.question_features(),
                sizes=self.batch.question_sizes(),
                image_index=None,
            )
        )

    def answer_linearly(self) -> None:
        """Linear layers as torch has them."""
        with patch.object(Dense, "_pays", never):
            self.answer(self.batch)

    def works(self) -> dict[str, Work]:
        return {
            "all": lambda: self.answer(self.batch),
            "images computed once for their questions": self.answer_alone,
            "oneDNN's kernels for linear layers (MKL's instead)": self.answer_linearly,
        }


def describe(times: dict[str, list[float]], work: str) -> list[Measurement]:
    """How many times as long the work takes without each lever."""
    return [
        Measurement(f"{work} without {name}", ratios(times[name], times["all"]), "× the time")
        for name in times
        if name != "all"
    ]


def measure(
    device: torch.device, rounds: int = 3, batch_size: int = 4, sizes: mcan.Sizes = SMALL
) -> Part:
    """One figure a lever."""
    generator = np.random.default_rng(0)
    uniform = make_batch([GRID] * batch_size, GRID[0] * GRID[1], sizes)
    mixed = make_batch([LARGEST, *draw_shapes(batch_size - 1, generator)], MOST_CELLS, sizes)
    steps = OurSteps("discrete", [uniform], sizes, device)
    training = TrainingLevers(steps, [uniform], [mixed])
    times = interleave(training.works(), device, rounds, "levers, training")
    with tempfile.TemporaryDirectory(prefix="levers-") as name:
        ours, _ = contestants(Path(name), 2, 4 * batch_size, sizes, device)
        loader = ours.loader
        pieces = evaluation_pieces(loader.examples.image_ids, loader.shapes, 4 * batch_size)
        [batch] = loader.iterate([max(pieces, key=lambda piece: len(piece.rows))])
        evaluation = EvaluationLevers(ours, batch)
        answers = interleave(evaluation.works(), device, rounds, "levers, evaluation")
    return Part([], describe(times, "training step") + describe(answers, "evaluation"))
