"""From weighted moments to a Gaussian: the algebra of the M-step, and moment matching."""

from typing import get_args

import torch
from torch import Tensor

from attention.grid import Grid
from attention.mixture import Mixture
from attention.options import Covariance, Floor, one_of, variance_or_cell

# Shape letters: B batch, L cells. A Gaussian is held as the five numbers
# location (…, 5) = [μ_u, μ_v, Σ_uu, Σ_uv, Σ_vv], its raw moments as (…, 6) = Σ_ℓ w_ℓ φ(x_ℓ).

DEAD = 1e-12  # a component with less mass keeps its last mean and covariance
NOTHING = 1e-30  # a sum of weights that says nothing


def moment_match(
    weights_BL: Tensor, grid: Grid, floor: Floor = 1e-6, covariance: Covariance = "full"
) -> Mixture:
    """The Gaussian with the mean and covariance of the weighted cells (R = K = 1)."""
    check_fit_options(floor, covariance)
    weights_BL, grid = as_distribution(weights_BL, grid)
    moments_B6 = weighted_monomials(weights_BL, grid).sum(1)
    pi, mean_moments = moments_B6[:, 0], moments_B6[:, 1:] / moments_B6[:, :1]
    location = locate(mean_moments, variance_floor(floor, grid), covariance)
    return as_mixture(pi[:, None, None], location[:, None, None])


def re_estimate(
    moments: Tensor, previous: Tensor, floor: Tensor, covariance: Covariance
) -> tuple[Tensor, Tensor]:
    """π (…), Eq. (9), and location (…, 5), Eqs. (10)–(11), from raw moments (…, 6)."""
    pi = moments[..., 0]
    alive = pi > DEAD
    mean_moments = moments[..., 1:] / torch.where(alive, pi, 1.0)[..., None]
    location = locate(mean_moments, floor, covariance)
    return pi, torch.where(alive[..., None], location, previous)


def locate(mean_moments: Tensor, floor: Tensor, covariance: Covariance) -> Tensor:
    """Location (…, 5) of the Gaussian with the means (…, 5) of [u, v, u², uv, v²].

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
    """(B, L, 6): w_ℓ φ(x_ℓ), whose sums over cells are the raw moments."""
    return weights_BL[..., None] * grid.monomials


def variance_floor(floor: Floor, grid: Grid) -> Tensor:
    """(B or 1, 2): what is added to variances: a number, or that of mass spread over one cell."""
    sides = grid.cell_sides.squeeze(1)
    return sides**2 / 12 if floor == "cell" else torch.full_like(sides, floor)


def as_distribution(weights_BL: Tensor, grid: Grid) -> tuple[Tensor, Grid]:
    """Weights in float64, summing to 1 over each image's real cells, and the grid on their device.

    Weights that are zero everywhere say nothing: they count as the same weight on every cell. So do
    weights whose sum is so small that the gradient of dividing by it would overflow.
    """
    expected = (len(grid), grid.num_cells)
    if weights_BL.shape != expected:
        raise ValueError(
            f"weights of shape {tuple(weights_BL.shape)} do not fit a grid of {expected[0]} images "
            f"padded to {expected[1]} cells"
        )
    grid = grid.to(weights_BL.device)
    weights_BL = weights_BL.double() if grid.is_uniform else weights_BL.double() * grid.mask
    says_something = weights_BL.sum(-1, keepdim=True) > NOTHING
    weights_BL = torch.where(says_something, weights_BL, grid.mask.double())
    return weights_BL / weights_BL.sum(-1, keepdim=True), grid


def check_fit_options(floor: Floor, covariance: Covariance) -> None:
    """Refuse a floor or a kind of covariance that there is not."""
    variance_or_cell("floor", floor)
    one_of("covariance", covariance, get_args(Covariance))


def as_mixture(
    pi_BRK: Tensor, location_BRK5: Tensor, num_components_BR: Tensor | None = None
) -> Mixture:
    """Unpack locations into means and covariance matrices."""
    if num_components_BR is None:
        num_components_BR = torch.full(
            pi_BRK.shape[:2], pi_BRK.shape[2], dtype=torch.int64, device=pi_BRK.device
        )
    sigma_BRK4 = location_BRK5[..., [2, 3, 3, 4]]
    return Mixture(
        pi_BRK, location_BRK5[..., :2], sigma_BRK4.view(*pi_BRK.shape, 2, 2), num_components_BR
    )


def location_of(mixture: Mixture) -> Tensor:
    """(B, R, K, 5): the inverse of `as_mixture`."""
    return torch.cat([mixture.mu, mixture.sigma.flatten(-2)[..., [0, 1, 3]]], dim=-1)
