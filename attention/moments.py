"""From weighted moments to a Gaussian: moment matching, and the algebra of the M-step."""

from typing import get_args

import torch
from torch import Tensor

from attention.densities.mixture import Mixture
from attention.grid import Grid
from attention.options import Covariance, Floor, check_choice, check_floor

# Shape letters: B batch, L cells. Locations: gaussian.py. Raw moments are Σ_ℓ w_ℓ φ(x_ℓ).

NOTHING = 1e-30  # a sum of weights that says nothing


def moment_match(
    weights_BL: Tensor, grid: Grid, floor: Floor = 1e-6, covariance: Covariance = "full"
) -> Mixture:
    """The Gaussian with the mean and covariance of the weighted cells (R = K = 1)."""
    check_fit_options(floor, covariance)
    weights_BL, grid = as_distribution(weights_BL, grid)
    moments_B6 = weighted_monomials(weights_BL, grid).sum(-1)
    pi_B, mean_moments_B5 = moments_B6[:, 0], moments_B6[:, 1:] / moments_B6[:, :1]
    location_B5 = locate(mean_moments_B5, variance_floor(floor, grid), covariance)
    one = torch.ones(1, dtype=torch.int64, device=grid.device)
    return Mixture.of_locations(pi_B[:, None, None], location_B5[:, None, None], one)


def locate(mean_moments: Tensor, floor: Tensor, covariance: Covariance) -> Tensor:
    """Location (…, 5), Eqs. (10)–(11), of the Gaussian with means (…, 5) of [u, v, u², uv, v²].

    The floor (…, 2) is added to the variances; it is what keeps a component on one cell finite.
    """
    u, v, uu, uv, vv = mean_moments.unbind(-1)
    sigma_uu, sigma_uv, sigma_vv = uu - u * u, uv - u * v, vv - v * v
    if covariance == "spherical":
        sigma_uu = sigma_vv = (sigma_uu + sigma_vv) / 2
        sigma_uv = torch.zeros_like(sigma_uv)
        floor = floor.amax(-1, keepdim=True).expand_as(floor)
    sigma_uu, sigma_vv = sigma_uu + floor[..., 0], sigma_vv + floor[..., 1]
    return torch.stack([u, v, sigma_uu, sigma_uv, sigma_vv], dim=-1)


def weighted_monomials(weights_BL: Tensor, grid: Grid) -> Tensor:
    """(B, 6, L): w_ℓ φ(x_ℓ), whose sums over cells are the raw moments."""
    return weights_BL[:, None] * grid.monomials


def variance_floor(floor: Floor, grid: Grid) -> Tensor:
    """(B or 1, 2): what is added to variances: a number, or that of mass spread over one cell."""
    sides = grid.cell_sides.squeeze(1)
    return sides**2 / 12 if floor == "cell" else torch.full_like(sides, floor)


def as_distribution(weights_BL: Tensor, grid: Grid) -> tuple[Tensor, Grid]:
    """Weights in float64, summing to 1 over each image's real cells, and the grid on their device.

    Weights that are zero everywhere say nothing: they count as the same weight on every cell. So do
    weights whose sum is so small that the gradient of dividing by it would overflow.
    """
    grid.check_cells("weights", weights_BL.shape)
    grid = grid.to(weights_BL.device)
    weights_BL = weights_BL.double() if grid.is_uniform else weights_BL.double() * grid.mask
    says_something = weights_BL.sum(-1, keepdim=True) > NOTHING
    weights_BL = torch.where(says_something, weights_BL, grid.mask.double())
    return weights_BL / weights_BL.sum(-1, keepdim=True), grid


def check_fit_options(floor: Floor, covariance: Covariance) -> None:
    """The floor must be a variance or "cell", the covariance one of its kinds."""
    check_floor("floor", floor)
    check_choice("covariance", covariance, get_args(Covariance))
