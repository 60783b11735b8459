"""The paper's attention as one would first write it: the baseline that the library is measured by.

It forms B, keeps the data centred, inverts and factorises with torch.linalg, and loops over the
components and over the candidates; batch and cells are vectorised. Its dtype is its input's.
"""

import math

import torch
from torch import Tensor

# Shape letters: B batch, L cells, K components, N basis functions, D features.


def gaussian(points: Tensor, mu: Tensor, sigma: Tensor) -> Tensor:
    """N(x; μ, Σ) for points (…, P, 2), μ (…, 2), Σ (…, 2, 2) -> (…, P)."""
    difference = points - mu[..., None, :]
    inverse = torch.linalg.inv(sigma)
    exponent = -0.5 * torch.einsum("...pi,...ij,...pj->...p", difference, inverse, difference)
    return exponent.exp() / (2 * math.pi * torch.linalg.det(sigma).sqrt())[..., None]


def basis_centres(num_basis: int, like: Tensor) -> Tensor:
    side = torch.linspace(0, 1, math.isqrt(num_basis), dtype=like.dtype, device=like.device)
    return torch.cartesian_prod(side, side)


def coefficients(
    values: Tensor, positions: Tensor, real: Tensor | None = None, num_basis: int = 100
) -> Tensor:
    """B (B, D, N): ridge regression of the values (B, L, D) on the basis at the cells.

    positions (L, 2), or (B, L, 2) with real (B, L), which is False in padding.
    """
    centres = basis_centres(num_basis, positions)
    narrow = 0.001 * torch.eye(2, dtype=positions.dtype, device=positions.device)
    design_NL = gaussian(positions[..., None, :, :], centres, narrow)
    if real is not None:
        design_NL = design_NL * real[:, None]
    ridge = 0.01 * torch.eye(num_basis, dtype=positions.dtype, device=positions.device)
    operator_LN = design_NL.mT @ torch.linalg.inv(design_NL @ design_NL.mT + ridge)
    return values.mT @ operator_LN


def weighted_em(weights: Tensor, positions: Tensor, means: Tensor, iterations: int):
    """WeightedEM for a batch: weights (B, L), means (K, 2) -> lists of π_k, μ_k, Σ_k over k."""
    batch, num_components = len(weights), len(means)
    identity = torch.eye(2, dtype=weights.dtype, device=weights.device)
    pi = [weights.new_full((batch,), 1 / num_components) for _ in range(num_components)]
    mu = [mean.expand(batch, 2) for mean in means]
    sigma = [0.001 * identity.expand(batch, 2, 2) for _ in range(num_components)]
    points = positions.expand(batch, -1, -1)
    for _ in range(iterations):
        joint = [pi[k][:, None] * gaussian(points, mu[k], sigma[k]) for k in range(num_components)]
        total = torch.stack(joint).sum(0).clamp(min=torch.finfo(weights.dtype).tiny)
        for k in range(num_components):
            mass = weights * joint[k] / total  # (B, L)
            pi[k] = mass.sum(1)
            share = mass / pi[k][:, None].clamp(min=1e-12)
            mu[k] = torch.einsum("bl,bli->bi", share, points)
            centred = points - mu[k][:, None]
            sigma[k] = torch.einsum("bl,bli,blj->bij", share, centred, centred) + 1e-6 * identity
    return pi, mu, sigma


def log_likelihood(weights: Tensor, positions: Tensor, pi, mu, sigma) -> Tensor:
    """(B,): Σ_ℓ w_ℓ log Σ_k π_k N(x_ℓ; μ_k, Σ_k)."""
    points = positions.expand(len(weights), -1, -1)
    density = sum(pi[k][:, None] * gaussian(points, mu[k], sigma[k]) for k in range(len(pi)))
    return (weights * density.clamp(min=torch.finfo(weights.dtype).tiny).log()).sum(1)


def context(coefficient: Tensor, pi, mu, sigma) -> Tensor:
    """(B, D): Σ_k π_k B r_k."""
    num_basis = coefficient.shape[-1]
    centres = basis_centres(num_basis, coefficient).expand(len(coefficient), -1, -1)
    narrow = 0.001 * torch.eye(2, dtype=coefficient.dtype, device=coefficient.device)
    total = coefficient.new_zeros(coefficient.shape[:2])
    for k in range(len(pi)):
        expectation_BN = gaussian(centres, mu[k], sigma[k] + narrow)
        total = total + pi[k][:, None] * torch.einsum("bdn,bn->bd", coefficient, expectation_BN)
    return total


def attend_in_training(
    scores: Tensor, values: Tensor, positions: Tensor, means: Tensor, iterations: int
):
    """One mixture from the given means (K, 2): context (B, D)."""
    weights = scores.softmax(-1)
    return context(
        coefficients(values, positions), *weighted_em(weights, positions, means, iterations)
    )


def attend_at_test_time(
    scores: Tensor,
    values: Tensor,
    positions: Tensor,
    means: list[Tensor],
    iterations: int,
    lam: float,
    real: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Model selection over all candidate starts, one after the other: context (B, D), K* (B,)."""
    weights = scores.softmax(-1)
    coefficient = coefficients(values, positions, real)
    best_cost = torch.full_like(weights[:, 0], torch.inf)
    best_context = coefficient.new_zeros(coefficient.shape[:2])
    best_size = torch.zeros(len(weights), dtype=torch.int64, device=weights.device)
    for start in means:
        fitted = weighted_em(weights, positions, start, iterations)
        cost = -2 * log_likelihood(weights, positions, *fitted) + lam * len(start)
        better = cost < best_cost
        best_cost = torch.where(better, cost, best_cost)
        best_size = torch.where(better, len(start), best_size)
        best_context = torch.where(better[:, None], context(coefficient, *fitted), best_context)
    return best_context, best_size
