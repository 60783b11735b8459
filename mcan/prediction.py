"""Answers of a model to many questions, over all processes, each question once."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from attention import AttentionOutput, Grid
from mcan.model import MCAN
from mcan.precision import autocast_to
from mcan.processes import World

COLLAPSED = 1e-8  # a covariance with a smaller determinant has shrunk onto a cell


class SharedQuestions(Protocol):
    """A batch whose images are there once for all their questions."""

    @property
    def features(self) -> Tensor: ...  # (i, L, F)

    @property
    def image_index(self) -> Tensor | None: ...  # (b,), the image of each question

    @property
    def tokens(self) -> Tensor: ...  # (b, T)

    @property
    def question_ids(self) -> Tensor: ...  # (b,)

    def question_sizes(self) -> tuple[tuple[int, int], ...]: ...


@dataclass(frozen=True)
class Predictions:
    """One row a question, by ascending question id."""

    question_ids: Tensor  # (Q,) int64
    answers: Tensor  # (Q,) int64, into the answer list
    probabilities: Tensor  # (Q,) float32, of that answer
    num_components: Tensor  # (Q,) int64: K*; 0 for discrete attention
    num_collapsed: Tensor  # (Q,) int64: components whose covariance has collapsed


@torch.inference_mode()
def predict(
    model: MCAN, batches: Iterable[SharedQuestions], world: World, dtype: torch.dtype
) -> Predictions:
    """Answer this process's batches with the test-time head, and gather all processes' answers."""
    model.eval()
    columns: list[tuple[Tensor, ...]] = []
    for batch in batches:
        index = batch.image_index
        features = batch.features.to(world.device, non_blocking=True)
        if index is not None:
            features = features[index.to(world.device, non_blocking=True)]
        grid = Grid.of(batch.question_sizes(), device=world.device)
        tokens = batch.tokens.to(world.device, non_blocking=True)
        with autocast_to(dtype, world.device):
            question, attended = model.look(features, grid, tokens)
            logits = model.answer(question, attended.context)
        best = logits.float().max(1)
        columns.append(
            (
                batch.question_ids.clone(),
                best.indices.cpu(),
                best.values.sigmoid().cpu(),
                *(column.cpu() for column in count_components(attended)),
            )
        )
    return merge(world.gather([torch.cat(column) for column in zip(*columns, strict=True)]))


def count_components(attended: AttentionOutput) -> tuple[Tensor, Tensor]:
    """(b,) K* and (b,) the collapsed components among them; zeros for discrete attention."""
    mixture = attended.mixture
    if mixture is None:
        none = torch.zeros(len(attended.context), dtype=torch.int64)
        return none, none
    num_components = mixture.num_components[:, 0]
    sigma = mixture.sigma[:, 0]  # (b, K, 2, 2)
    determinant = sigma[..., 0, 0] * sigma[..., 1, 1] - sigma[..., 0, 1] ** 2
    in_use = torch.arange(sigma.shape[1], device=sigma.device) < num_components[:, None]
    return num_components, ((determinant < COLLAPSED) & in_use).sum(1)


def merge(parts: list[list[Tensor]]) -> Predictions:
    """All processes' columns as one table, sorted by question id."""
    columns = [torch.cat(column) for column in zip(*(part for part in parts if part), strict=True)]
    order = columns[0].argsort()
    return Predictions(*(column[order] for column in columns))
