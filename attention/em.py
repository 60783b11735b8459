"""EM for Gaussian mixtures on weighted data: Section 4.1 of the paper, all restarts in one batch.

With φ(x) = [1, u, v, u², uv, v²], log(π_k N(x; μ_k, Σ_k)) is linear in φ(x): the E-step is one
matrix product and a softmax, and the M-step's sums over cells are one matrix product. Raw moments
cancel, so all of it runs in float64.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from attention.grid import Grid
from attention.mixture import Mixture
from attention.moments import (
    as_distribution,
    as_mixture,
    check_fit_options,
    location_of,
    re_estimate,
    variance_floor,
)
from attention.options import Covariance, Floor, whole_number
from attention.quadratic import coefficients

# Shape letters: B batch, R restarts, K components, C those of all starts, L cells.
# Locations (…, 5): see moments.py.

INITIAL_VARIANCE = 0.001
NO_MASS = 1e-30  # below it a component takes no responsibility, and log π has no gradient


def fit_mixture(
    weights_BL: Tensor,
    grid: Grid,
    init_means: Tensor,
    iterations: int = 10,
    floor: Floor = 1e-6,
    covariance: Covariance = "full",
) -> Mixture:
    """Weighted EM from π = 1/K, the given means and Σ = 0.001·I: Algorithm 1, WeightedEM.

    weights (B, L), init_means (R, K, 2) or (B, R, K, 2) -> a mixture with R restarts.
    """
    check_fit_options(floor, covariance)
    whole_number("iterations", iterations, 0)
    weights_BL, grid = as_distribution(weights_BL, grid)
    means_BRK2 = _checked_means(init_means, len(grid)).to(weights_BL).expand(len(grid), -1, -1, -1)
    pi_BRK, location_BRK5 = initialise(means_BRK2)
    pi_BRK, location_BRK5 = expectation_maximisation(
        weights_BL, grid, pi_BRK, location_BRK5, iterations, floor, covariance
    )
    return as_mixture(pi_BRK, location_BRK5)


def log_likelihood(mixture: Mixture, weights_BL: Tensor, grid: Grid) -> Tensor:
    """(B, R): Σ_ℓ w_ℓ log p(x_ℓ), Eqs. (6)–(7), with weights that sum to 1 over each image."""
    if len(mixture.pi) != len(grid):
        raise ValueError(f"{len(mixture.pi)} mixtures do not fit a grid of {len(grid)} images")
    weights_BL, grid = as_distribution(weights_BL.to(mixture.pi.device), grid)
    return judge(mixture, weights_BL, grid)


def judge(mixture: Mixture, weights_BL: Tensor, grid: Grid) -> Tensor:
    """(B, R): the log-likelihood of Eq. (7) under weights taken as they are."""
    theta_BC6 = log_joint_coefficients(mixture.pi, location_of(mixture)).flatten(1, 2)
    [joint_BRKL] = log_joints(theta_BC6, [mixture.pi.shape], _monomials_of_each(grid), [None])
    return weighted_log_likelihood(joint_BRKL, weights_BL)


def _checked_means(means: Tensor, num_images: int) -> Tensor:
    """Initial means as they must be: (R, K, 2) or (B, R, K, 2), with R and K from 1 on."""
    fits = means.ndim == 3 or (means.ndim == 4 and len(means) in (1, num_images))
    if not fits or means.shape[-1] != 2 or 0 in means.shape:
        raise ValueError(
            f"init_means of shape {tuple(means.shape)} must be (restarts, components, 2) or "
            f"({num_images}, restarts, components, 2)"
        )
    return means


def initialise(means_BRK2: Tensor) -> tuple[Tensor, Tensor]:
    """π = 1/K and Σ = 0.001·I around the given means."""
    pi_BRK = torch.full_like(means_BRK2[..., 0], 1 / means_BRK2.shape[-2])
    return pi_BRK, around(means_BRK2)


def around(means: Tensor) -> Tensor:
    """(…, 5): locations with the given means (…, 2) and the initial covariance."""
    variance = torch.full_like(means[..., 0], INITIAL_VARIANCE)
    return torch.stack([*means.unbind(-1), variance, torch.zeros_like(variance), variance], dim=-1)


def expectation_maximisation(
    weights_BL: Tensor,
    grid: Grid,
    pi_BRK: Tensor,
    location_BRK5: Tensor,
    iterations: int,
    floor: Floor,
    covariance: Covariance,
) -> tuple[Tensor, Tensor]:
    """Alternate E- and M-steps; a component that starts with π = 0 stays out of the mixture."""
    [fitted] = maximise_together(
        weights_BL, grid, [(pi_BRK, location_BRK5)], iterations, floor, covariance
    )
    return fitted


def maximise_together(
    weights_BL: Tensor,
    grid: Grid,
    starts: Sequence[tuple[Tensor, Tensor]],
    iterations: int,
    floor: Floor,
    covariance: Covariance,
) -> list[tuple[Tensor, Tensor]]:
    """EM from several starts π (B, R, K) and location (B, R, K, 5), each of its own R and K.

    The algebra of a component runs once for all of them, side by side as C; only what sums over the
    components of a mixture or over cells runs start by start, so that none carries unused ones.
    """
    monomials_B6L = _monomials_of_each(grid)
    weighted_B6L = weights_BL[:, None] * monomials_B6L
    floor_2 = variance_floor(floor, grid)[:, None]  # (B or 1, 1, 2)
    shapes = [pi.shape for pi, _ in starts]
    spaces = [None if torch.is_grad_enabled() else _make_space(grid, shape) for shape in shapes]
    pi_BC = torch.cat([pi.flatten(1) for pi, _ in starts], 1)
    location_BC5 = torch.cat([location.flatten(1, 2) for _, location in starts], 1)
    for _ in range(iterations):
        theta_BC6 = log_joint_coefficients(pi_BC, location_BC5)
        moments_B6C = [
            weighted_B6L @ responsibilities(joint_BRKL).flatten(1, 2).mT
            for joint_BRKL in log_joints(theta_BC6, shapes, monomials_B6L, spaces)
        ]
        moments_BC6 = torch.cat(moments_B6C, 2).mT
        pi_BC, location_BC5 = re_estimate(moments_BC6, location_BC5, floor_2, covariance)
    pairs = zip(divide(pi_BC, shapes), divide(location_BC5, shapes), strict=True)
    return [
        (pi.view(shape), location.view(*shape, 5))
        for shape, (pi, location) in zip(shapes, pairs, strict=True)
    ]


def divide(x_BC: Tensor, shapes: Sequence[torch.Size]) -> tuple[Tensor, ...]:
    """Give each start its components again: (B, C, …) -> (B, R·K, …) for each (B, R, K)."""
    return torch.split(x_BC, [restarts * components for _, restarts, components in shapes], 1)


def responsibilities(log_joint_BRKL: Tensor) -> Tensor:
    """γ_ℓk (B, R, K, L): the share of component k in cell ℓ, Eq. (8).

    Where no gradient is recorded, they take the place of what they are made from.
    """
    space = None if torch.is_grad_enabled() else log_joint_BRKL
    return torch.softmax(log_joint_BRKL, dim=2, out=space)


def weighted_log_likelihood(log_joint_BRKL: Tensor, weights_BL: Tensor) -> Tensor:
    """(B, R): Σ_ℓ w_ℓ log Σ_k π_k N(x_ℓ; μ_k, Σ_k), Eq. (7)."""
    return (log_joint_BRKL.logsumexp(dim=2) @ weights_BL[..., None]).squeeze(-1)


def log_joints(
    theta_BC6: Tensor,
    shapes: Sequence[torch.Size],
    monomials_B6L: Tensor,
    spaces: Sequence[Tensor | None],
) -> Iterator[Tensor]:
    """(B, R, K, L) for each start: log(π_k N(x_ℓ; μ_k, Σ_k)) at every cell, as a matrix product.

    They are written into the spaces if there are any: a megabyte of fresh memory at every iteration
    would cost as much as the arithmetic.
    """
    for shape, theta, space in zip(shapes, divide(theta_BC6, shapes), spaces, strict=True):
        yield torch.bmm(theta.contiguous(), monomials_B6L, out=space).view(*shape, -1)


def _monomials_of_each(grid: Grid) -> Tensor:
    """(B, 6, L): φ at the cells of every image; a product goes image by image, as all others do."""
    return grid.monomials.mT.contiguous().expand(len(grid), -1, -1)


def _make_space(grid: Grid, shape: torch.Size) -> Tensor:
    """Room for the products of log_joints with one start's components."""
    batch, restarts, components = shape
    return grid.monomials.new_empty(batch, restarts * components, grid.num_cells)


def log_joint_coefficients(pi: Tensor, location: Tensor) -> Tensor:
    """θ (…, 6) with log(π N(x; μ, Σ)) = θ·φ(x)."""
    has_mass = pi > NO_MASS
    log_pi = torch.where(has_mass, torch.where(has_mass, pi, 1.0).log(), -torch.inf)
    return coefficients(location.unbind(-1), log_pi)
