"""log N(x; μ, Σ) = θ·φ(x) with φ(x) = [1, u, v, u², uv, v²]: many densities at many points at once.

One matrix product takes the place of a formula at every point. Its terms cancel, so it needs
float64.
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


def coefficients(location: Sequence[Tensor], log_scale: Tensor | float = 0.0) -> Tensor:
    """θ (…, 6) with log_scale + log N(x; μ, Σ) = θ·φ(x), from [μ_u, μ_v, Σ_uu, Σ_uv, Σ_vv]."""
    u, v, sigma_uu, sigma_uv, sigma_vv = location
    determinant = sigma_uu * sigma_vv - sigma_uv * sigma_uv
    precision_uu, precision_uv = sigma_vv / determinant, -sigma_uv / determinant
    precision_vv = sigma_uu / determinant
    linear_u = precision_uu * u + precision_uv * v
    linear_v = precision_uv * u + precision_vv * v
    constant = log_scale - LOG_TWO_PI - 0.5 * (determinant.log() + u * linear_u + v * linear_v)
    return torch.stack(
        [constant, linear_u, linear_v, -0.5 * precision_uu, -precision_uv, -0.5 * precision_vv],
        dim=-1,
    )
