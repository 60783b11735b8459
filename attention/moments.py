"""From weighted moments to a Gaussian: the algebra of the M-step, and moment matching."""

from typing import Literal

import torch
from torch import Tensor

from attention.grid import Grid
from attention.mixture import Mixture

# Shape letters: B batch, L cells. A Gaussian is held as the five numbers
# location (…, 5) = [μ_u, μ_v, Σ_uu, Σ_uv, Σ_vv], its raw moments as (…, 6) = Σ_ℓ w_ℓ φ(x_ℓ).

Covariance = Literal["full", "spherical"]
Floor = float | Literal["cell"]

DEAD = 1e-12  # a component with less mass keeps its last mean and covariance


def moment_match(
    weights_BL: Tensor, grid: Grid, floor: Floor = 1e-6, covariance: Covariance = "full"
) -> Mixture:
    """The Gaussian with the mean and covariance of the weighted cells (R = K = 1)."""
    weights_BL, grid = as_distribution(weights_BL, grid)
    moments_B6 = weighted_monomials(weights_BL, grid).sum(1)
    unused = moments_B6[:, 1:]  # all of the mass belongs to the one component: it is never dead
    pi, location = re_estimate(moments_B6, unused, variance_floor(floor, grid), covariance)
    return as_mixture(pi[:, None, None], location[:, None, None])


def re_estimate(
    moments: Tensor, previous: Tensor, floor: Tensor, covariance: Covariance
) -> tuple[Tensor, Tensor]:
    """π (…), Eq. (9), and location (…, 5), Eqs. (10)–(11), from raw moments (…, 6).

    The floor (…, 2) is added to the variances; it is what keeps a component on one cell finite.
    """
    pi = moments[..., 0]
    alive = pi > DEAD
    mean_moments = moments[..., 1:] / torch.where(alive, pi, 1.0)[..., None]
    u, v, uu, uv, vv = mean_moments.unbind(-1)
    sigma_uu, sigma_uv, sigma_vv = uu - u * u, uv - u * v, vv - v * v
    if covariance == "spherical":
        sigma_uu = sigma_vv = (sigma_uu + sigma_vv) / 2
        sigma_uv = torch.zeros_like(sigma_uv)
        floor = floor.amax(-1, keepdim=True).expand_as(floor)
    sigma_uu, sigma_vv = sigma_uu + floor[..., 0], sigma_vv + floor[..., 1]
    location = torch.stack([u, v, sigma_uu, sigma_uv, sigma_vv], dim=-1)
    return pi, torch.where(alive[..., None], location, previous)


def weighted_monomials(weights_BL: Tensor, grid: Grid) -> Tensor:
    """(B, L, 6): w_ℓ φ(x_ℓ), whose sums over cells are the raw moments."""
    return weights_BL[..., None] * grid.monomials


def variance_floor(floor: Floor, grid: Grid) -> Tensor:
    """(B or 1, 2): what is added to variances: a number, or that of mass spread over one cell."""
    sides = grid.cell_sides.squeeze(1)
    return sides**2 / 12 if floor == "cell" else torch.full_like(sides, floor)


def as_distribution(weights_BL: Tensor, grid: Grid) -> tuple[Tensor, Grid]:
    """The weights in float64, scaled to sum to 1 over each image, and the grid on their device."""
    expected = (len(grid), grid.num_cells)
    if weights_BL.shape != expected:
        raise ValueError(
            f"weights of shape {tuple(weights_BL.shape)} do not fit a grid of {expected[0]} images "
            f"padded to {expected[1]} cells"
        )
    weights_BL = weights_BL.double()
    return weights_BL / weights_BL.sum(-1, keepdim=True), grid.to(weights_BL.device)


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
