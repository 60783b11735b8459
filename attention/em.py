"""EM for mixtures of Gaussians on weighted data: Section 4.1 of the paper.

With φ(x) = [1, u, v, u², uv, v²], log(π_k N(x; μ_k, Σ_k)) is linear in φ(x): the E-step is one
matrix product and a softmax, and the M-step's sums over cells are one matrix product. Raw moments
cancel, so all of it runs in float64.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from attention.densities.gaussian import log_gaussian
from attention.densities.mixture import Mixture
from attention.grid import Grid
from attention.initial import initial_mixture
from attention.moments import (
    as_distribution,
    check_fit_options,
    covariance_floor,
    mean_and_covariance,
    weighted_monomials,
)
from attention.options import Covariance, Floor, check_whole_number

# Shape letters: B batch, R restarts, K components, C = R·K, L cells.

Iteration = Callable[[Mixture, Tensor, Tensor, Tensor, Covariance], Mixture]
SMALLEST_PI = 1e-12  # a component with less keeps its last mean and covariance
ZERO_PI = 1e-30  # below it a component has no responsibility, and log π no gradient


def em_iteration(
    theta: Mixture,
    phi_B6L: Tensor,
    weighted_B6L: Tensor,
    floor_22: Tensor,
    covariance: Covariance,
) -> Mixture:
    """Θ after one more iteration; a function of tensors alone, which torch.compile may take."""
    gamma_BRKL = e_step(theta, phi_B6L)  # Eq. (8)
    return m_step(gamma_BRKL, weighted_B6L, theta, floor_22, covariance)  # Eqs. (9)–(11)


def weighted_em(
    weights_BL: Tensor,
    grid: Grid,
    theta: Mixture,
    iterations: int,
    floor: Floor,
    covariance: Covariance,
    iterate: Iteration = em_iteration,
) -> Mixture:
    """Θ after I iterations from an initial Θ(K): Algorithm 1, WeightedEM.

    A component that starts with π = 0 stays out, so mixtures of any size run in one batch.
    """
    phi_B6L, weighted_B6L = grid.monomials, weighted_monomials(weights_BL, grid)
    floor_22 = covariance_floor(floor, covariance, grid)[:, None, None]  # (B or 1, 1, 1, 2, 2)
    for _ in range(iterations):
        theta = iterate(theta, phi_B6L, weighted_B6L, floor_22, covariance)
    return theta


def e_step(theta: Mixture, phi_B6L: Tensor) -> Tensor:
    """γ_ℓk (B, R, K, L): the responsibility of component k for cell ℓ, Eq. (8)."""
    return log_joint(theta, phi_B6L).softmax(dim=2)


def m_step(
    gamma_BRKL: Tensor,
    weighted_B6L: Tensor,
    last: Mixture,
    floor_22: Tensor,
    covariance: Covariance,
) -> Mixture:
    """Mixing coefficients, Eq. (9), means and covariances, Eqs. (10)–(11).

    A component without mass keeps its last mean and covariance, which no gradient has to reach.
    """
    moments_B6C = weighted_B6L @ gamma_BRKL.flatten(1, 2).mT
    moments_BRK6 = moments_B6C.mT.view(*last.pi.shape, 6)
    pi_BRK1 = moments_BRK6[..., :1]
    is_empty_BRK1 = pi_BRK1 <= SMALLEST_PI
    mean_moments_BRK6 = moments_BRK6 / pi_BRK1.masked_fill(is_empty_BRK1, 1.0)
    mu_BRK2, sigma_BRK22 = mean_and_covariance(mean_moments_BRK6, floor_22, covariance)
    return Mixture(
        pi_BRK1.squeeze(-1),
        torch.where(is_empty_BRK1, last.mu.detach(), mu_BRK2),
        torch.where(is_empty_BRK1[..., None], last.sigma.detach(), sigma_BRK22),
        last.num_components,
    )


def log_joint(theta: Mixture, phi_B6L: Tensor) -> Tensor:
    """(B, R, K, L): log(π_k N(x_ℓ; μ_k, Σ_k)) at every cell, one matrix product for each image."""
    is_zero = theta.pi <= ZERO_PI
    log_pi_BRK = theta.pi.masked_fill(is_zero, 1.0).log().masked_fill(is_zero, -torch.inf)
    coefficients_BC6 = log_gaussian(theta.mu, theta.sigma, log_pi_BRK).flatten(1, 2)
    return (coefficients_BC6 @ phi_B6L).view(*theta.pi.shape, phi_B6L.shape[-1])


def weighted_log_likelihood(theta: Mixture, weights_BL: Tensor, grid: Grid) -> Tensor:
    """(B, R): Σ_ℓ w_ℓ log p(x_ℓ | Θ) with p = Σ_k π_k N(x_ℓ; μ_k, Σ_k), Eqs. (6)–(7)."""
    log_joint_BRKL = log_joint(theta, grid.monomials)
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
    initial = initial_mixture(means_BRK2, (components,) * restarts)
    return weighted_em(weights_BL, grid, initial, iterations, floor, covariance)


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
