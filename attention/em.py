"""EM for mixtures of Gaussians on weighted data: Section 4.1 of the paper.

With φ(x) = [1, u, v, u², uv, v²], log(π_k N(x; μ_k, Σ_k)) is linear in φ(x): the E-step is one
matrix product and a softmax, and the M-step's sums over cells are one matrix product. Raw moments
cancel, so all of it runs in float64.
"""

import torch
from torch import Tensor

from attention.densities.gaussian import log_gaussian
from attention.densities.mixture import Mixture
from attention.grid import Grid
from attention.initial import initial_parameters
from attention.moments import (
    as_distribution,
    check_fit_options,
    locate,
    variance_floor,
    weighted_monomials,
)
from attention.options import Covariance, Floor, check_whole_number

# Shape letters: B batch, R restarts, K components, C = R·K, L cells. Locations: gaussian.py.

DEAD = 1e-12  # a component with less mass keeps its last mean and covariance
NO_MASS = 1e-30  # below it a component takes no responsibility, and log π has no gradient


def weighted_em(
    weights_BL: Tensor,
    grid: Grid,
    pi_BRK: Tensor,
    location_BRK5: Tensor,
    iterations: int,
    floor: Floor,
    covariance: Covariance,
) -> tuple[Tensor, Tensor]:
    """π (B, R, K) and locations (B, R, K, 5), from initial ones: Algorithm 1, WeightedEM.

    A component that starts with π = 0 stays out, so mixtures of any size run in one batch.
    """
    phi_B6L, weighted_B6L = grid.monomials, weighted_monomials(weights_BL, grid)
    floor_2 = variance_floor(floor, grid)[:, None, None]  # (B or 1, 1, 1, 2)
    for _ in range(iterations):
        gamma_BRKL = e_step(pi_BRK, location_BRK5, phi_B6L)  # Eq. (8)
        pi_BRK, location_BRK5 = m_step(  # Eqs. (9)–(11)
            gamma_BRKL, weighted_B6L, location_BRK5, floor_2, covariance
        )
    return pi_BRK, location_BRK5


def e_step(pi_BRK: Tensor, location_BRK5: Tensor, phi_B6L: Tensor) -> Tensor:
    """γ_ℓk (B, R, K, L): the responsibility of component k for cell ℓ, Eq. (8)."""
    return log_joint(pi_BRK, location_BRK5.unbind(-1), phi_B6L).softmax(dim=2)


def m_step(
    gamma_BRKL: Tensor,
    weighted_B6L: Tensor,
    location_BRK5: Tensor,
    floor_2: Tensor,
    covariance: Covariance,
) -> tuple[Tensor, Tensor]:
    """π (B, R, K), Eq. (9), and locations (B, R, K, 5): means and covariances, Eqs. (10)–(11)."""
    moments_B6C = weighted_B6L @ gamma_BRKL.flatten(1, 2).mT
    moments_BRK6 = moments_B6C.mT.view(*location_BRK5.shape[:3], 6)
    pi_BRK = moments_BRK6[..., 0]
    alive_BRK = pi_BRK > DEAD
    mean_moments = moments_BRK6[..., 1:] / torch.where(alive_BRK, pi_BRK, 1.0)[..., None]
    located_BRK5 = locate(mean_moments, floor_2, covariance)
    return pi_BRK, torch.where(alive_BRK[..., None], located_BRK5, location_BRK5)


def log_joint(pi_BRK: Tensor, locations: tuple[Tensor, ...], phi_B6L: Tensor) -> Tensor:
    """(B, R, K, L): log(π_k N(x_ℓ; μ_k, Σ_k)) at every cell, one matrix product for each image."""
    has_mass = pi_BRK > NO_MASS
    log_pi_BRK = torch.where(has_mass, torch.where(has_mass, pi_BRK, 1.0).log(), -torch.inf)
    theta_BC6 = log_gaussian(locations, log_pi_BRK).flatten(1, 2)
    return (theta_BC6 @ phi_B6L).view(*pi_BRK.shape, phi_B6L.shape[-1])


def weighted_log_likelihood(mixture: Mixture, weights_BL: Tensor, grid: Grid) -> Tensor:
    """(B, R): Σ_ℓ w_ℓ log p(x_ℓ | Θ) with p = Σ_k π_k N(x_ℓ; μ_k, Σ_k), Eqs. (6)–(7)."""
    log_joint_BRKL = log_joint(mixture.pi, mixture.locations, grid.monomials)
    return (log_joint_BRKL.logsumexp(dim=2) @ weights_BL[..., None]).squeeze(-1)


def fit_mixture(
    weights_BL: Tensor,
    grid: Grid,
    init_means: Tensor,
    iterations: int = 10,
    floor: Floor = 1e-6,
    covariance: Covariance = "full",
) -> Mixture:
    """Weighted EM from π = 1/K, the given means and Σ = 0.001·I.

    weights (B, L), init_means (R, K, 2) or (B, R, K, 2) -> a mixture with R restarts.
    """
    check_fit_options(floor, covariance)
    check_whole_number("iterations", iterations, 0)
    _check_means(init_means, len(grid))
    weights_BL, grid = as_distribution(weights_BL, grid)
    means_BRK2 = init_means.to(weights_BL).expand(len(grid), -1, -1, -1)
    _, restarts, components, _ = means_BRK2.shape
    num_components_R = torch.full((restarts,), components, device=weights_BL.device)
    start = initial_parameters(means_BRK2, num_components_R)
    fitted = weighted_em(weights_BL, grid, *start, iterations, floor, covariance)
    return Mixture.of_locations(*fitted, num_components_R)


def log_likelihood(mixture: Mixture, weights_BL: Tensor, grid: Grid) -> Tensor:
    """(B, R): the weighted log-likelihood, with weights that sum to 1 over each image."""
    if len(mixture.pi) != len(grid):
        raise ValueError(f"{len(mixture.pi)} mixtures do not fit a grid of {len(grid)} images")
    weights_BL, grid = as_distribution(weights_BL.to(mixture.pi.device), grid)
    return weighted_log_likelihood(mixture, weights_BL, grid)


def _check_means(means: Tensor, num_images: int) -> None:
    """Initial means must be (R, K, 2) or (B, R, K, 2), with R and K from 1 on."""
    fits = means.ndim == 3 or (means.ndim == 4 and len(means) in (1, num_images))
    if not fits or means.shape[-1] != 2 or 0 in means.shape:
        raise ValueError(
            f"init_means of shape {tuple(means.shape)} must be (restarts, components, 2) or "
            f"({num_images}, restarts, components, 2)"
        )
