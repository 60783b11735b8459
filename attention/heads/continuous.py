"""Continuous attention: one density over the image instead of weights on its cells."""

from collections.abc import Mapping
from typing import Literal, get_args

from torch import Tensor

from attention.basis import RadialBasis
from attention.context import multimodal_attention
from attention.densities.mixture import Mixture
from attention.densities.paraboloid import ParaboloidMixture
from attention.grid import Grid
from attention.heads.head import AttentionOutput, Head
from attention.heads.registry import register
from attention.moments import fit_gaussian
from attention.normalisers import Normaliser
from attention.options import Covariance, Floor, check_choice, check_floor

Family = Literal["gaussian", "paraboloid"]
DENSITIES: Mapping[Family, type[Mixture]] = {
    "gaussian": Mixture,
    "paraboloid": ParaboloidMixture,
}


class ContinuousHead(Head):
    """What the continuous heads share: the value function, the covariances, and the density.

    Gaussians are fitted in any case; the density is of the family chosen, with their π, μ and Σ.
    """

    def __init__(
        self,
        covariance: Covariance = "full",
        floor: Floor = 1e-6,
        num_basis: int = 100,
        basis_variance: float = 0.001,
        ridge: float = 0.01,
        validate: bool = False,
        normaliser: Normaliser = "softmax",
        density: Family = "gaussian",
    ) -> None:
        super().__init__(validate, normaliser)
        self.covariance: Covariance = check_choice("covariance", covariance, get_args(Covariance))
        self.floor: Floor = check_floor("floor", floor)
        self.density: Family = check_choice("density", density, get_args(Family))
        self.basis = RadialBasis(num_basis, basis_variance, ridge)

    def as_density(self, fitted: Mixture) -> Mixture:
        """The density with the mixing coefficients, means and covariances of fitted Gaussians."""
        family = DENSITIES[self.density]
        return family(fitted.pi, fitted.mu, fitted.sigma, fitted.num_components)


@register("unimodal")
class UnimodalHead(ContinuousHead):
    """One density by moment matching: the paper's Section 2.2."""

    def attend(
        self, weights: Tensor, values: Tensor, grid: Grid, num_components: int | None, step: int
    ) -> AttentionOutput:
        if num_components not in (None, 1):
            raise ValueError(f"unimodal attention has one component, not {num_components}")
        mixture = self.as_density(fit_gaussian(weights, grid, self.floor, self.covariance))
        context = multimodal_attention(mixture, values, grid, self.basis).squeeze(1)
        return AttentionOutput(context, weights, mixture)
