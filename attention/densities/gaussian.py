"""Gaussians as polynomials: log N(x; μ, Σ) = a·φ(x) with φ(x) = [1, u, v, u², uv, v²].

One matrix product evaluates many Gaussians at many points. Its terms cancel, so it needs float64.
"""

import math

import torch
from torch import Tensor

LOG_TWO_PI = math.log(2 * math.pi)


def monomials(points: Tensor) -> Tensor:
    """φ (…, 6) of points (…, 2)."""
    u, v = points.unbind(-1)
    return torch.stack([torch.ones_like(u), u, v, u * u, u * v, v * v], dim=-1)


def log_gaussian(mu: Tensor, sigma: Tensor, log_scale: Tensor | float = 0.0) -> Tensor:
    """a (…, 6) with a·φ(x) = log_scale + log N(x; μ, Σ), from μ (…, 2) and Σ (…, 2, 2)."""
    sigma_uu, sigma_uv, _, sigma_vv = sigma.flatten(-2).unbind(-1)
    determinant = sigma_uu * sigma_vv - sigma_uv * sigma_uv
    inverse = (sigma_vv / determinant, -sigma_uv / determinant, sigma_uu / determinant)
    return score_function(mu, inverse, log_scale - LOG_TWO_PI - 0.5 * determinant.log())


def score_function(
    mu: Tensor, inverse: tuple[Tensor, Tensor, Tensor], offset: Tensor | float = 0.0
) -> Tensor:
    """a (…, 6) with a·φ(x) = offset + f(x), where f(x) = −½ (x − μ)ᵀ Σ⁻¹ (x − μ), Eq. (2).

    The inverse Σ⁻¹ is given by its elements uu, uv and vv, each (…).
    """
    u, v = mu.unbind(-1)
    inverse_uu, inverse_uv, inverse_vv = inverse
    linear_u = inverse_uu * u + inverse_uv * v
    linear_v = inverse_uv * u + inverse_vv * v
    constant = offset - 0.5 * (u * linear_u + v * linear_v)
    return torch.stack(
        [constant, linear_u, linear_v, -0.5 * inverse_uu, -inverse_uv, -0.5 * inverse_vv], dim=-1
    )
