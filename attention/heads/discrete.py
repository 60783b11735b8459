"""Discrete attention: the weights themselves."""

from torch import Tensor

from attention.context import weighted_sum
from attention.grid import Grid
from attention.heads.head import AttentionOutput, Head
from attention.heads.registry import register


@register("discrete")
class DiscreteHead(Head):
    """c = V·p, where p are the weights: the paper's Section 2.1 with p = softmax(scores)."""

    uses_positions = False

    def attend(
        self, weights: Tensor, values: Tensor, grid: Grid, num_components: int | None, step: int
    ) -> AttentionOutput:
        context = weighted_sum(weights[:, None], values).squeeze(1)
        return AttentionOutput(context, weights)
