"""From weighted moments to a Gaussian: moment matching, and the algebra of the M-step."""

from typing import get_args

import torch
from torch import Tensor

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
    weights_BL, grid = as_distribution(weights_BL, grid)
    moments_B6 = weighted_monomials(weights_BL, grid).sum(-1)
    mu_B2, sigma_B22 = mean_and_covariance(
        moments_B6 / moments_B6[:, :1], variance_floor(floor, grid), covariance
    )
    one = torch.ones(1, 1, dtype=torch.int64, device=grid.device).expand(len(grid), 1)
    return Mixture(moments_B6[:, None, :1], mu_B2[:, None, None], sigma_B22[:, None, None], one)


def mean_and_covariance(
    moments: Tensor, floor: Tensor, covariance: Covariance
) -> tuple[Tensor, Tensor]:
    """μ (…, 2), Eq. (10), and Σ (…, 2, 2), Eq. (11), from the means (…, 6) of φ(x).

    The floor (…, 2) is added to the variances; it is what keeps a component on one cell finite.
    """
    _, mu, second_moments = moments.split_with_sizes([1, 2, 3], dim=-1)
    (u, v), (uu, uv, vv) = mu.unbind(-1), second_moments.unbind(-1)
    sigma_uu, sigma_uv, sigma_vv = uu - u * u, uv - u * v, vv - v * v
    if covariance == "spherical":
        sigma_uu = sigma_vv = (sigma_uu + sigma_vv) / 2
        sigma_uv = torch.zeros_like(sigma_uv)
        floor = floor.amax(-1, keepdim=True).expand_as(floor)
    sigma_uu, sigma_vv = sigma_uu + floor[..., 0], sigma_vv + floor[..., 1]
    sigma = torch.stack([sigma_uu, sigma_uv, sigma_uv, sigma_vv], dim=-1)
    return mu, sigma.view(*u.shape, 2, 2)


def weighted_monomials(weights_BL: Tensor, grid: Grid) -> Tensor:
    """(B, 6, L): w_ℓ φ(x_ℓ), whose sums over cells are the raw moments."""
    return weights_BL[:, None] * grid.monomials


def variance_floor(floor: Floor, grid: Grid) -> Tensor:
    """(B or 1, 2): what is added to variances: a number, or that of mass spread over one cell."""
    sides = grid.cell_sides.squeeze(1)
    return sides**2 / 12 if floor == "cell" else torch.full_like(sides, floor)


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
