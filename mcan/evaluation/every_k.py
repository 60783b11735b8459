"""One pass that answers under every number of components, so that λ can be chosen afterwards."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from attention.selection import Candidates, select_components
from data.batching.batch import Batch
from mcan.evaluation.predict import (
    answer_logits,
    attend,
    check_answers,
    count_collapsed,
    gather_rows,
)
from mcan.network.model import MCAN
from mcan.runtime.distributed import World


@dataclass(frozen=True)
class PredictionsPerK:
    """One row per question, by ascending id; column k − 1 is the mixture of k components."""

    question_ids: Tensor  # (Q,) int64
    log_likelihood: Tensor  # (Q, k_max) float64
    answers: Tensor  # (Q, k_max) int64, into the answer list
    probabilities: Tensor  # (Q, k_max) float32, of those answers
    num_collapsed: Tensor  # (Q, k_max) int64
    complexity: Tensor  # (k_max,) float64: what λ multiplies

    @property
    def k_max(self) -> int:
        """The most components that were fitted."""
        return self.answers.shape[1]

    def select(self, lam: float, k_max: int) -> Tensor:
        """(Q,) int64: K* under a λ and a k_max, as the head would select it."""
        return select_components(self.log_likelihood[:, :k_max], self.complexity[:k_max], lam)


@torch.inference_mode()
def answer_candidates(
    model: MCAN, batches: Iterable[Batch], world: World, dtype: torch.dtype
) -> PredictionsPerK:
    """Answer this process's batches under every k, and gather all processes' answers."""
    rows = (answer_every_k(model, batch, world, dtype) for batch in batches)
    *table, complexity = gather_rows(rows, world)
    answers = PredictionsPerK(*[*table, complexity[0]])
    check_answers(answers.question_ids, answers.probabilities)
    return answers


def answer_every_k(
    model: MCAN, batch: Batch, world: World, dtype: torch.dtype
) -> tuple[Tensor, ...]:
    """A batch's rows of `PredictionsPerK`, each with the complexity, which is the same for all."""
    question, attended = attend(model, batch, world, dtype)
    candidates = attended.candidates
    if candidates is None:
        raise ValueError("this attention head fits one density alone: there is no λ to select")
    return (
        batch.question_ids,
        candidates.log_likelihood,
        *best_answers(model, question, candidates),
        count_collapsed(candidates.mixture),
        candidates.complexity.expand(len(question), -1),
    )


def best_answers(model: MCAN, question: Tensor, candidates: Candidates) -> tuple[Tensor, Tensor]:
    """(b, k_max) int64 and float32: the answer under every k, and its probability."""
    # One k at a time, as `predict` has it: a product of another shape may round otherwise.
    best = [
        answer_logits(model, question, context.contiguous()).max(1)
        for context in candidates.context.unbind(1)
    ]
    logits, answers = (torch.stack(each, 1) for each in zip(*best, strict=True))
    return answers, logits.sigmoid()
