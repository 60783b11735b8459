"""Gaussians as polynomials: log N(x; μ, Σ) = θ·φ(x) with φ(x) = [1, u, v, u², uv, v²].

One matrix product evaluates many Gaussians at many points. Its terms cancel, so it needs float64.
A Gaussian is held as its location (…, 5) = [μ_u, μ_v, Σ_uu, Σ_uv, Σ_vv].
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

LOG_TWO_PI = math.log(2 * math.pi)


def monomials(points: Tensor) -> Tensor:
    """φ (…, 6) of points (…, 2)."""
    u, v = points.unbind(-1)
    return torch.stack([torch.ones_like(u), u, v, u * u, u * v, v * v], dim=-1)


def log_gaussian(location: Sequence[Tensor], log_scale: Tensor | float = 0.0) -> Tensor:
    """θ (…, 6) with θ·φ(x) = log_scale + log N(x; μ, Σ): the score, normalised."""
    log_determinant = _determinant(location).log()
    return score_function(location, log_scale - LOG_TWO_PI - 0.5 * log_determinant)


def score_function(location: Sequence[Tensor], offset: Tensor | float = 0.0) -> Tensor:
    """θ (…, 6) with θ·φ(x) = offset + f(x), where f(x) = −½ (x − μ)ᵀ Σ⁻¹ (x − μ), Eq. (2)."""
    u, v, sigma_uu, sigma_uv, sigma_vv = location
    determinant = _determinant(location)
    precision_uu, precision_vv = sigma_vv / determinant, sigma_uu / determinant
    precision_uv = -sigma_uv / determinant
    linear_u = precision_uu * u + precision_uv * v
    linear_v = precision_uv * u + precision_vv * v
    constant = offset - 0.5 * (u * linear_u + v * linear_v)
    return torch.stack(
        [constant, linear_u, linear_v, -0.5 * precision_uu, -precision_uv, -0.5 * precision_vv],
        dim=-1,
    )


def _determinant(location: Sequence[Tensor]) -> Tensor:
    """|Σ| (…) in closed form."""
    _, _, sigma_uu, sigma_uv, sigma_vv = location
    return sigma_uu * sigma_vv - sigma_uv * sigma_uv
