"""From weighted moments to a Gaussian: moment matching, and the algebra of the M-step."""

from functools import partial
from typing import get_args

import torch
from torch import Tensor

from attention.cache import cached
from attention.densities.mixture import Mixture
from attention.grid import Grid
from attention.options import Covariance, Floor, check_choice, check_floor

# Shape letters: B batch, L cells. Raw moments are Σ_ℓ w_ℓ φ(x_ℓ), with φ of gaussian.py.

SMALLEST_SUM = 1e-30  # of weights; below it, dividing by the sum has no finite gradient


def moment_match(
    weights_BL: Tensor, grid: Grid, floor: Floor = 1e-6, covariance: Covariance = "full"
) -> Mixture:
    """The Gaussian with the mean and covariance of the weighted cells (R = K = 1)."""
    check_fit_options(floor, covariance)
    return fit_gaussian(*as_distribution(weights_BL, grid), floor, covariance)


def fit_gaussian(weights_BL: Tensor, grid: Grid, floor: Floor, covariance: Covariance) -> Mixture:
    """`moment_match` of float64 weights that sum to 1 over each image, as those of a head do."""
    moments_B6 = weighted_monomials(weights_BL, grid).sum(-1)
    mu_B2, sigma_B22 = mean_and_covariance(
        moments_B6 / moments_B6[:, :1], covariance_floor(floor, covariance, grid), covariance
    )
    one_B1 = _one(grid.device).expand(len(grid), 1)
    return Mixture(moments_B6[:, None, :1], mu_B2[:, None, None], sigma_B22[:, None, None], one_B1)


@cached
def _one(device: torch.device) -> Tensor:
    return torch.ones(1, 1, dtype=torch.int64, device=device)


def mean_and_covariance(
    moments: Tensor, floor: Tensor, covariance: Covariance
) -> tuple[Tensor, Tensor]:
    """μ (…, 2), Eq. (10), and Σ (…, 2, 2), Eq. (11), from the means (…, 6) of φ(x).

    The floor (…, 2, 2) is added to Σ; it is what keeps a component on one cell finite.
    """
    mu = moments[..., 1:3]
    second_moments = moments[..., 3:].unfold(-1, 2, 1)  # [[uu, uv], [uv, vv]]
    sigma = torch.addcmul(second_moments, mu[..., :, None], mu[..., None, :], value=-1)
    if covariance == "spherical":
        variance = sigma.diagonal(dim1=-2, dim2=-1).mean(-1, keepdim=True)
        sigma = torch.diag_embed(variance.expand_as(mu))
    return mu, sigma + floor


def weighted_monomials(weights_BL: Tensor, grid: Grid) -> Tensor:
    """(B, 6, L): w_ℓ φ(x_ℓ), whose sums over cells are the raw moments."""
    return weights_BL[:, None] * grid.monomials


def covariance_floor(floor: Floor, covariance: Covariance, grid: Grid) -> Tensor:
    """(B or 1, 2, 2): what is added to Σ: a variance, or that of mass spread over one cell."""
    return grid.stack(partial(_covariance_floor, floor, covariance)).squeeze(1)


@cached
def _covariance_floor(
    floor: Floor, covariance: Covariance, height: int, width: int, device: torch.device
) -> Tensor:
    variances = [1 / (12 * side**2) if floor == "cell" else floor for side in (height, width)]
    if covariance == "spherical":
        variances = [max(variances)] * 2
    return torch.tensor(variances, dtype=torch.float64, device=device).diag()[None]


def as_distribution(weights_BL: Tensor, grid: Grid) -> tuple[Tensor, Grid]:
    """Weights in float64, summing to 1 over each image's real cells, and the grid on their device.

    Weights that are zero everywhere, or whose sum is too small to divide by, count as the same
    weight on every cell.
    """
    grid.check_cells("weights", weights_BL.shape)
    grid = grid.to(weights_BL.device)
    weights_BL = weights_BL.double() if grid.is_uniform else weights_BL.double() * grid.mask
    is_positive = weights_BL.sum(-1, keepdim=True) > SMALLEST_SUM
    weights_BL = torch.where(is_positive, weights_BL, grid.mask.double())
    return weights_BL / weights_BL.sum(-1, keepdim=True), grid


def check_fit_options(floor: Floor, covariance: Covariance) -> None:
    """The floor must be a variance or "cell", the covariance one of its kinds."""
    check_floor("floor", floor)
    check_choice("covariance", covariance, get_args(Covariance))
