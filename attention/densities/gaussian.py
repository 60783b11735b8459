"""Gaussians as polynomials: log N(x; μ, Σ) = a·φ(x) with φ(x) = [1, u, v, u², uv, v²].

One matrix product evaluates many Gaussians at many points. Its terms cancel, so it needs float64.
A GPU wants few large operations, so each one here works on all elements of Σ at once; those of
torch.linalg would wait for the device.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from attention.cache import cached

Numbers = tuple[float, ...]
ADJUGATE = (1.0, -1.0, -1.0, 1.0)  # the signs of the elements of adj(Σ)
# log 1/2π of a Gaussian, and ½ log 2 because its constant has the logarithm of 2|Σ|
OFFSET = (-math.log(2 * math.pi) + math.log(2) / 2, 0.0, 0.0, 0.0, 0.0, 0.0)
FACTORS = (1.0, 2.0, 2.0, -1.0, -2.0, -1.0)  # of 1, Hμ and H in −(x − μ)ᵀ H (x − μ)


def monomials(points: Tensor) -> Tensor:
    """φ (…, 6) of points (…, 2)."""
    u, v = points.unbind(-1)
    return torch.stack([torch.ones_like(u), u, v, u * u, u * v, v * v], dim=-1)


def log_gaussian(mu: Tensor, sigma: Tensor, log_scale: Tensor | None = None) -> Tensor:
    """a (…, 6) with a·φ(x) = log_scale + log N(x; μ, Σ), from μ (…, 2) and Σ (…, 2, 2).

    log N(x; μ, Σ) = f(x) − log 2π − ½ log |Σ|, with the score f(x) = −½ (x − μ)ᵀ Σ⁻¹ (x − μ),
    Eq. (2), which is −xᵀHx + 2 (Hμ)ᵀx − μᵀHμ for H = ½ Σ⁻¹.
    """
    coefficients: Tensor = _LogGaussian.apply(mu, sigma, log_scale)  # type: ignore[no-untyped-call]
    return coefficients


class _LogGaussian(torch.autograd.Function):
    """`log_gaussian` with its gradient in closed form: a third of the kernels of autograd's."""

    @staticmethod
    def forward(ctx: Any, mu: Tensor, sigma: Tensor, log_scale: Tensor | None) -> Tensor:
        adjugate = sigma.flip(-2, -1) * _constant(ADJUGATE, sigma.device).view(2, 2)
        twice_determinant = (sigma * adjugate).sum((-2, -1))
        half_inverse = adjugate / twice_determinant[..., None, None]
        linear = (half_inverse * mu[..., None, :]).sum(-1)
        constant = -0.5 * twice_determinant.log() - (mu * linear).sum(-1)
        if log_scale is not None:
            constant = constant + log_scale
        ctx.save_for_backward(half_inverse, linear)
        elements = half_inverse.flatten(-2)  # uu, uv, vu, vv
        parts = [constant[..., None], linear, elements[..., :2], elements[..., 3:]]
        offset, factors = _constant(OFFSET, mu.device), _constant(FACTORS, mu.device)
        return torch.addcmul(offset, torch.cat(parts, dim=-1), factors)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """∂/∂μ = 2 ZQe₁ and, for a symmetric Σ, ∂/∂Σ = 2 ZQZᵀ − g₁H, with Z = [−Hμ, H].

        Q is the gradient g as a symmetric matrix: [[g₁, g₂, g₃], [g₂, g₄, g₅], [g₃, g₅, g₆]].
        """
        half_inverse, linear = ctx.saved_tensors
        rows = [(0, 3), (1, 2), (3, 5), (2, 3), (4, 6)]
        form = torch.cat([gradient[..., start:end] for start, end in rows], dim=-1)  # Q
        factor = torch.cat([-linear[..., None], half_inverse], dim=-1)  # Z
        product = factor @ form.view(*form.shape[:-1], 3, 3)
        to_sigma = torch.baddbmm(
            (gradient[..., :1, None] * half_inverse).flatten(0, -3),
            product.flatten(0, -3),
            factor.flatten(0, -3).mT,
            beta=-1,
            alpha=2,
        )
        to_scale = gradient[..., 0] if ctx.needs_input_grad[2] else None
        return 2 * product[..., 0], to_sigma.view_as(half_inverse), to_scale


def _constant(numbers: Numbers, device: torch.device) -> Tensor:
    if torch.compiler.is_compiling():  # constants in the code that is generated, not a copy
        return torch.stack([torch.full((), x, dtype=torch.float64, device=device) for x in numbers])
    return _cached_constant(numbers, device)


@cached
def _cached_constant(numbers: Numbers, device: torch.device) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64, device=device)
