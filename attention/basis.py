"""The image as a function: Gaussian radial basis functions fitted to the cells by ridge regression.

V_B(x) = Bψ(x) with B = V·G. Neither B nor V_B is ever formed: the context of a density with
expectations r = E[ψ] is c = B r = V (G r), two small products, and α = G r is the continuous
attention seen as weights on the cells.
"""

import math
import warnings

import torch
from torch import Tensor

from attention.cache import made_once
from attention.densities.gaussian import log_gaussian, monomials
from attention.densities.mixture import Mixture
from attention.grid import Grid
from attention.options import check_positive, check_whole_number

# Shape letters: B batch, R restarts, K components, N basis functions, L cells.


class RadialBasis:
    """N Gaussians N(x; μ̃_j, variance·I), their means on a √N × √N lattice over [0, 1]²."""

    def __init__(self, num_basis: int = 100, variance: float = 0.001, ridge: float = 0.01) -> None:
        check_whole_number("num_basis", num_basis, 4)
        if math.isqrt(num_basis) ** 2 != num_basis:
            raise ValueError(f"num_basis must be a square number, not {num_basis}")
        self.num_basis = num_basis
        self.variance = check_positive("basis_variance", variance)
        self.ridge = check_positive("ridge", ridge)

    def expectations(self, mixture: Mixture) -> Tensor:
        """r (B, R, K, N): r_kj = E_{p_k}[ψ_j] = N(μ_k; μ̃_j, Σ_k + Σ̃_j), the integral of Eq. (3)."""
        u, v, sigma_uu, sigma_uv, sigma_vv = mixture.locations
        widened = (u, v, sigma_uu + self.variance, sigma_uv, sigma_vv + self.variance)
        return (log_gaussian(widened) @ _centre_monomials(self.num_basis, u.device)).exp()

    def cell_weights(self, mixture: Mixture, grid: Grid) -> Tensor:
        """α = G Σ_k π_k r_k (B, R, L): c = Σ_ℓ α_ℓ V_ℓ. They may be negative, unlike a density."""
        r_BRN = (mixture.pi[..., None, :] @ self.expectations(mixture)).squeeze(-2)
        return r_BRN @ self.ridge_operator(grid).squeeze(0).mT

    def ridge_operator(self, grid: Grid) -> Tensor:
        """G (B or 1, L, N): the value function V_B(x) = Bψ(x), Eq. (1), has B = V·G."""

        def of_shape(height: int, width: int, device: torch.device) -> Tensor:
            return _ridge_operator(self.num_basis, self.variance, self.ridge, height, width, device)

        return grid.stack(of_shape)


@made_once
def _centres(num_basis: int, device: torch.device) -> Tensor:
    side = torch.linspace(0, 1, math.isqrt(num_basis), dtype=torch.float64, device=device)
    return torch.cartesian_prod(side, side)  # (N, 2)


@made_once
def _centre_monomials(num_basis: int, device: torch.device) -> Tensor:
    return monomials(_centres(num_basis, device)).mT.contiguous()  # (6, N)


@made_once
def _ridge_operator(
    num_basis: int, variance: float, ridge: float, height: int, width: int, device: torch.device
) -> Tensor:
    """G = Fᵀ(FFᵀ + ridge·I)⁻¹ (L, N), with F (N, L) the basis at the cell centres."""
    host = torch.device("cpu")
    positions_L2 = Grid(((height, width),), host).positions[0]
    basis_NL = _evaluate(num_basis, variance, positions_L2)
    gram_NN = basis_NL @ basis_NL.mT + ridge * torch.eye(
        num_basis, dtype=torch.float64, device=host
    )
    operator_LN = torch.cholesky_solve(basis_NL, torch.linalg.cholesky(gram_NN)).mT
    _warn_of_a_bad_fit(operator_LN, num_basis, variance, height, width)
    return operator_LN.contiguous().to(device)


def _evaluate(num_basis: int, variance: float, points: Tensor) -> Tensor:
    """ψ(x) (N, P) at points (P, 2)."""
    difference = points - _centres(num_basis, points.device)[:, None]
    return torch.exp(-0.5 * difference.square().sum(-1) / variance) / (2 * math.pi * variance)


def _warn_of_a_bad_fit(
    operator_LN: Tensor, num_basis: int, variance: float, height: int, width: int
) -> None:
    """Warn, once per shape, when a constant image is not fitted as one.

    On 9×9 cells every centre falls half-way between the basis functions of a 10×10 lattice, and
    the effective weights of a density sum to 2.8 instead of 1.
    """
    centres_N2 = _centres(num_basis, operator_LN.device)
    deviation = math.sqrt(variance)
    inside_N2 = torch.special.ndtr((1 - centres_N2) / deviation) - torch.special.ndtr(
        -centres_N2 / deviation
    )
    mean = float(operator_LN.sum(0) @ inside_N2.prod(-1))  # of the fit over the unit square
    if abs(mean - 1) > 0.2:
        warnings.warn(
            f"a constant image on a {height}×{width} grid is fitted as {mean:.2f} instead of 1 by "
            f"{num_basis} basis functions of variance {variance}: continuous attention will "
            f"misjudge it; another grid or another num_basis fits better",
            stacklevel=2,
        )
