"""Continuous attention: one density over the image instead of weights on its cells."""

from typing import get_args

from torch import Tensor

from attention.basis import RadialBasis
from attention.grid import Grid
from attention.head import AttentionOutput, Head, weighted_sum
from attention.mixture import Mixture
from attention.moments import moment_match
from attention.options import Covariance, Floor, one_of, variance_or_cell
from attention.registry import register


class ContinuousHead(Head):
    """What the continuous heads share: the value function, and the options of a covariance."""

    def __init__(
        self,
        covariance: Covariance = "full",
        floor: Floor = 1e-6,
        num_basis: int = 100,
        basis_variance: float = 0.001,
        ridge: float = 0.01,
        validate: bool = False,
    ) -> None:
        super().__init__(validate)
        self.covariance: Covariance = one_of("covariance", covariance, get_args(Covariance))
        self.floor: Floor = variance_or_cell("floor", floor)
        self.basis = RadialBasis(num_basis, basis_variance, ridge)

    def contexts(self, mixture: Mixture, values: Tensor, grid: Grid) -> Tensor:
        """(B, R, D): c = E_p[V_B(x)] for every restart, Eqs. (3) and (5)."""
        return weighted_sum(self.basis.cell_weights(mixture, grid), values)


@register("unimodal")
class UnimodalHead(ContinuousHead):
    """One Gaussian by moment matching: the paper's Section 2.2."""

    def attend(
        self, weights: Tensor, values: Tensor, grid: Grid, num_components: int | None, step: int
    ) -> AttentionOutput:
        if num_components not in (None, 1):
            raise ValueError(f"unimodal attention has one component, not {num_components}")
        mixture = moment_match(weights, grid, self.floor, self.covariance)
        context = self.contexts(mixture, values, grid).squeeze(1)
        return AttentionOutput(context, weights, mixture)
