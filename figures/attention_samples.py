"""What trained models attend to and answer, question by question, as plain values to be drawn."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attention import AttentionOutput, Density, Grid
from attention.selection import description_length
from data.batching.batch import Batch
from data.features.store_set import StoreSet
from data.vqa.questions import Questions
from figures.drawing.mixture import DrawnMixture
from mcan.evaluation.attention_maps import spread_over_cells
from mcan.evaluation.evaluation_split import iterate_questions
from mcan.evaluation.predict import attend
from mcan.evaluation.single_question import Prediction, rank_answers
from mcan.evaluation.trained_model import TrainedModel, name_models
from mcan.runtime.distributed import World
from mcan.runtime.precision import choose_dtype
from mcan.runtime.settings import Runtime


@dataclass(frozen=True)
class Candidate:
    """A fitted mixture, what it would answer, and the values that it is selected by."""

    mixture: DrawnMixture
    prediction: Prediction
    log_likelihood: float
    description_length: float  # C(k), the least of which is selected


@dataclass(frozen=True)
class AttentionSample:
    """One model's attention and answer to one question."""

    question_id: int
    prediction: Prediction
    cells: np.ndarray  # (h, w) float64, sum 1: the weights, or the density's mass in each cell
    mixture: DrawnMixture | None  # None for discrete attention
    candidates: tuple[Candidate, ...] = ()  # of k = 1, 2, …, where the head selects K
    boxes: np.ndarray | None = None  # (h, 4), x1, y1, x2, y2 in [0, 1], where cells are regions

    @property
    def num_components(self) -> int:
        """K*, or 0 for discrete attention."""
        return 0 if self.mixture is None else len(self.mixture.pi)


def collect_samples(
    trained: TrainedModel, questions: Questions, stores: StoreSet, runtime: Runtime
) -> list[AttentionSample]:
    """A model's attention and answers to questions, in their order, from this process alone."""
    world = World(0, 1, next(trained.model.parameters()).device)
    batches = iterate_questions(questions, stores, trained, runtime, world)
    dtype = choose_dtype(runtime.precision, world.device)
    found = {
        sample.question_id: sample
        for batch in batches
        for sample in sample_batch(trained, batch, stores, world, dtype)
    }
    return [found[number] for number in questions.ids.tolist()]


@torch.inference_mode()
def sample_batch(
    trained: TrainedModel, batch: Batch, stores: StoreSet, world: World, dtype: torch.dtype
) -> list[AttentionSample]:
    """Answer a batch with the test-time head and keep its attention."""
    question, attended = attend(trained.model, batch, world, dtype)
    sizes = batch.question_sizes()
    cells = spread_over_cells(attended, Grid.of(sizes, device=world.device)).cpu().numpy()
    predictions = rank_answers(trained, question, attended.context, 1)
    candidates = list_candidates(trained, question, attended)
    mixtures: Sequence[DrawnMixture | None] = [None] * len(sizes)
    if attended.mixture is not None:
        mixtures = read_mixtures(attended.mixture)
    return [
        AttentionSample(
            number,
            predictions[row][0],
            cells[row, : height * width].reshape(height, width).copy(),
            mixtures[row],
            tuple(of_k[row] for of_k in candidates),
            stores.boxes(image_id),
        )
        for row, (number, image_id, (height, width)) in enumerate(
            zip(batch.question_ids.tolist(), batch.image_ids.tolist(), sizes, strict=True)
        )
    ]


def list_candidates(
    trained: TrainedModel, question: Tensor, attended: AttentionOutput
) -> list[list[Candidate]]:
    """For every k, the candidate of each question; empty where the head does not select K."""
    candidates, lam = attended.candidates, trained.lam
    if candidates is None or lam is None:
        return []
    lengths = description_length(candidates.log_likelihood, candidates.complexity, lam)
    return [
        [
            Candidate(mixture, prediction, likelihood, length)
            for mixture, (prediction,), likelihood, length in zip(
                read_mixtures(candidates.mixture, k),
                rank_answers(trained, question, candidates.context[:, k], 1),
                candidates.log_likelihood[:, k].tolist(),
                lengths[:, k].tolist(),
                strict=True,
            )
        ]
        for k in range(candidates.context.shape[1])
    ]


def read_mixtures(mixture: Density, number: int = 0) -> list[DrawnMixture]:
    """The components in use of each image's mixture of that number, as arrays."""
    used = mixture.num_components[:, number].tolist()
    pi, mu, sigma = (
        part[:, number].cpu().numpy() for part in (mixture.pi, mixture.mu, mixture.sigma)
    )
    return [
        DrawnMixture(pi[row, :k], mu[row, :k], sigma[row, :k], mixture.support)
        for row, k in enumerate(used)
    ]


def name_heads(models: Sequence[TrainedModel]) -> list[str]:
    """What each model is called in a figure: by its head, or its own name where heads repeat."""
    heads = [model.head_name for model in models]
    return heads if len(set(heads)) == len(heads) else name_models(models)
