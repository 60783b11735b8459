"""Continuous attention: one density over the image instead of weights on its cells."""

from typing import get_args

from torch import Tensor

from attention.basis import RadialBasis
from attention.context import multimodal_attention
from attention.grid import Grid
from attention.heads.head import AttentionOutput, Head
from attention.heads.registry import register
from attention.moments import fit_gaussian
from attention.options import Covariance, Floor, check_choice, check_floor


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
        self.covariance: Covariance = check_choice("covariance", covariance, get_args(Covariance))
        self.floor: Floor = check_floor("floor", floor)
        self.basis = RadialBasis(num_basis, basis_variance, ridge)


@register("unimodal")
class UnimodalHead(ContinuousHead):
    """One Gaussian by moment matching: the paper's Section 2.2."""

    def attend(
        self, weights: Tensor, values: Tensor, grid: Grid, num_components: int | None, step: int
    ) -> AttentionOutput:
        if num_components not in (None, 1):
            raise ValueError(f"unimodal attention has one component, not {num_components}")
        mixture = fit_gaussian(weights, grid, self.floor, self.covariance)
        context = multimodal_attention(mixture, values, grid, self.basis).squeeze(1)
        return AttentionOutput(context, weights, mixture)
