"""Predictions of a model for many questions, over all processes, each question once.

A batch holds its images once for all their questions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attention import AttentionOutput, Density, Grid, Head
from data.batching.batch import Batch
from mcan.network.model import MCAN
from mcan.runtime.distributed import World
from mcan.runtime.memory import explain_batch
from mcan.runtime.precision import autocast_to

LATTICE = 64  # points per side of the image at which a density is looked at
COLLAPSED = 1e-8  # a covariance with a smaller determinant has shrunk onto a cell


@dataclass(frozen=True)
class Predictions:
    """One row per question, by ascending question id."""

    question_ids: Tensor  # (Q,) int64
    answers: Tensor  # (Q,) int64, into the answer list
    probabilities: Tensor  # (Q,) float32, of that answer
    num_components: Tensor  # (Q,) int64: K*; 0 for discrete attention and for an ensemble
    num_collapsed: Tensor  # (Q,) int64: components whose covariance has collapsed
    perplexity: Tensor  # (Q,) float32: how many cells the weights spread over; NaN for an ensemble
    # (Q,) float32, NaN for heads whose weights or densities are never zero:
    zero_weight_share: Tensor  # of the real cells those whose weight is exactly 0
    outside_support_share: Tensor  # of the image, where the density is 0


@torch.inference_mode()
def predict(model: MCAN, batches: Iterable[Batch], world: World, dtype: torch.dtype) -> Predictions:
    """Answer this process's batches with the test-time head, and gather all processes' answers."""
    return as_predictions((answer_batch(model, batch, world, dtype) for batch in batches), world)


@torch.inference_mode()
def predict_ensemble(
    models: Sequence[MCAN], batches: Iterable[Batch], world: World, dtype: torch.dtype
) -> Predictions:
    """Answer as an ensemble: the answer whose probability, averaged over the models, is highest."""
    return as_predictions((answer_ensemble(models, each, world, dtype) for each in batches), world)


def answer_batch(model: MCAN, batch: Batch, world: World, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """A batch's rows of `Predictions`, by one model."""
    question, attended = attend(model, batch, world, dtype)
    best = answer_logits(model, question, attended.context).max(1)
    grid = Grid.of(batch.question_sizes(), device=world.device)
    return (
        batch.question_ids,
        best.indices,
        best.values.sigmoid(),
        *components_in_use(attended),
        weight_perplexity(attended.weights),
        share_zero_weights(model.pool_image.head, attended, grid),
        share_outside_support(attended),
    )


def answer_ensemble(
    models: Sequence[MCAN], batch: Batch, world: World, dtype: torch.dtype
) -> tuple[Tensor, ...]:
    """A batch's rows of `Predictions`, by an ensemble."""
    total: Tensor | float = 0.0
    for model in models:
        question, attended = attend(model, batch, world, dtype)
        # in float64: sure answers, near probability 1, stay apart
        total = total + answer_logits(model, question, attended.context).double().sigmoid()
    best = (total / len(models)).max(1)  # type: ignore[union-attr]
    none = torch.zeros_like(batch.question_ids)
    undefined = torch.full((len(none),), torch.nan)
    about_attention = (none, none, undefined, undefined, undefined)
    return batch.question_ids, best.indices, best.values.float(), *about_attention


def attend(
    model: MCAN, batch: Batch, world: World, dtype: torch.dtype
) -> tuple[Tensor, AttentionOutput]:
    """The pooled questions (b, output), and the test-time head's attention over their images."""
    model.eval()
    features = batch.features.to(world.device, non_blocking=True)
    grid = Grid.of(batch.question_sizes(), device=world.device)
    tokens = batch.tokens.to(world.device, non_blocking=True)
    by_batch = getattr(model.pool_image.head, "selection", None) == "batch"
    with explain_batch(len(batch.tokens), by_batch), autocast_to(dtype, world.device):
        return model.attend(
            features,
            grid,
            tokens,
            image_index=batch.image_index,
            device_index=batch.device_index,
        )


def answer_logits(model: MCAN, question: Tensor, context: Tensor) -> Tensor:
    """(b, A) float32, outside autocast: in eight bits the best two answers are often equal."""
    return model.answer(question.float(), context.float())


def components_in_use(attended: AttentionOutput) -> tuple[Tensor, Tensor]:
    """(b,) K* and (b,) the collapsed components among them; zeros for discrete attention."""
    mixture = attended.mixture
    if mixture is None:
        none = torch.zeros(len(attended.context), dtype=torch.int64)
        return none, none
    return mixture.num_components[:, 0], count_collapsed(mixture)[:, 0]


def count_collapsed(mixture: Density) -> Tensor:
    """(b, R): the components in use whose covariance has collapsed."""
    sigma = mixture.sigma  # (b, R, K, 2, 2)
    determinant = sigma[..., 0, 0] * sigma[..., 1, 1] - sigma[..., 0, 1] ** 2
    number = torch.arange(sigma.shape[2], device=sigma.device)
    in_use = number < mixture.num_components[..., None]
    return ((determinant < COLLAPSED) & in_use).sum(-1)


def weight_perplexity(weights: Tensor) -> Tensor:
    """(b,) float32: exp of the entropy of the weights (b, L), from 1 to the number of cells."""
    return torch.special.entr(weights).sum(1).exp().float()


def share_zero_weights(head: Head, attended: AttentionOutput, grid: Grid) -> Tensor:
    """(b,) float32: the share of real cells whose weight is exactly 0; NaN for softmax."""
    weights = attended.weights
    if getattr(head, "normaliser", "softmax") == "softmax":
        return torch.full((len(weights),), torch.nan)
    num_zero = ((weights == 0) & grid.mask).sum(1)
    return num_zero.float() / grid.mask.sum(1)


def share_outside_support(attended: AttentionOutput) -> Tensor:
    """(b,) float32: the share of LATTICE × LATTICE points of the image at which the density is 0.

    NaN for Gaussians, which are nowhere zero, and for discrete attention. The points are the
    centres of equal cells, whatever the grid of the features is.
    """
    mixture = attended.mixture
    if mixture is None or mixture.support is None:
        return torch.full((len(attended.weights),), torch.nan)
    points = Grid.of([(LATTICE, LATTICE)], device=attended.weights.device).positions[0]
    return (mixture.density(points)[:, 0] == 0).float().mean(1)


def as_predictions(rows: Iterable[tuple[Tensor, ...]], world: World) -> Predictions:
    """All processes' answers, from the rows of this process's batches."""
    predictions = Predictions(*gather_rows(rows, world))
    check_answers(predictions.question_ids, predictions.probabilities[:, None])
    return predictions


def check_answers(question_ids: Tensor, probabilities: Tensor) -> None:
    """Raise where a question's (Q, …) answer is not a number: it would count as an answer."""
    bad = question_ids[probabilities.isnan().any(1)].tolist()
    if bad:
        raise ValueError(
            f"the network's answers to {len(bad)} questions, the first is {bad[0]}, are NaN: its "
            "weights or the features of that image are damaged; look with make verify-features"
        )


def gather_rows(rows: Iterable[tuple[Tensor, ...]], world: World) -> list[Tensor]:
    """All processes' columns, each the batches' in turn, as one table sorted by question id.

    A batch's rows stay on the device until all are there: to fetch each would wait for each.
    """
    own = [column.cpu() for column in join_rows(rows)]
    parts = [part for part in world.gather(own) if part]  # a process may have had no batch
    if not parts:
        raise ValueError("there are no questions to answer")
    together = [torch.cat(column) for column in zip(*parts, strict=True)]
    order = together[0].argsort()
    return [column[order] for column in together]


def join_rows(rows: Iterable[tuple[Tensor, ...]]) -> list[Tensor]:
    """The columns of all rows, joined as they come: few tensors stay behind.

    Thousands of small ones, left between the large ones of each batch, would keep the C library
    from using that memory again, which took gigabytes for VQA-v2's test split.
    """
    parts: list[list[Tensor]] = []
    for row in rows:
        parts.append(list(row))
        while len(parts) > 1 and len(parts[-2][0]) <= len(parts[-1][0]):
            last = parts.pop()
            parts[-1] = [torch.cat(pair) for pair in zip(parts[-1], last, strict=True)]
    return [torch.cat(column) for column in zip(*parts, strict=True)]
