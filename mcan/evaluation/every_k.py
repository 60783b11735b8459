"""One pass that answers under every number of components, so that λ can be chosen afterwards."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from attention.selection import select_components
from data.batching.batch import Batch
from mcan.evaluation.predict import (
    Predictions,
    answer_logits,
    attend,
    check_answers,
    count_collapsed,
    gather_rows,
)
from mcan.network.model import MCAN
from mcan.runtime.distributed import World


@dataclass(frozen=True)
class CandidateAnswers:
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

    def choose(self, lam: float, k_max: int) -> Predictions:
        """What `predict` gives with a head of that λ and k_max."""
        selected = self.select(lam, k_max)

        def take(table: Tensor) -> Tensor:
            return table.gather(1, selected[:, None] - 1).squeeze(1)

        return Predictions(
            self.question_ids,
            take(self.answers),
            take(self.probabilities),
            selected,
            take(self.num_collapsed),
        )


@torch.inference_mode()
def answer_candidates(
    model: MCAN, batches: Iterable[Batch], world: World, dtype: torch.dtype
) -> CandidateAnswers:
    """Answer this process's batches under every k, and gather all processes' answers."""
    model.eval()
    columns: list[tuple[Tensor, ...]] = []
    complexity: Tensor | None = None
    for batch in batches:
        question, attended = attend(model, batch, world, dtype)
        candidates = attended.candidates
        if candidates is None:
            raise ValueError("this attention head fits one density alone: there is no λ to select")
        complexity = candidates.complexity.cpu()
        # One k at a time, as `predict` has it: a product of another shape may round otherwise.
        best = [
            answer_logits(model, question, context.contiguous()).max(1)
            for context in candidates.context.unbind(1)
        ]
        columns.append(
            (
                batch.question_ids.clone(),
                candidates.log_likelihood.cpu(),
                torch.stack([each.indices for each in best], 1).cpu(),
                torch.stack([each.values for each in best], 1).sigmoid().cpu(),
                count_collapsed(candidates.mixture).cpu(),
            )
        )
    table = gather_rows(columns, world)
    every = [each for each in world.gather(complexity) if each is not None]
    answers = CandidateAnswers(*[*table, every[0]])
    check_answers(answers.question_ids, answers.probabilities)
    return answers
