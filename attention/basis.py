"""The image as a function: Gaussian radial basis functions fitted to the cells by ridge regression.

V_B(x) = Bψ(x) with B = V·G. Neither B nor V_B is ever formed: the context of a density with
expectations r = E[ψ] is c = B r = V (G r), two small products, and α = G r is the continuous
attention seen as weights on the cells.
"""

import math
import warnings
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from attention.cache import cached
from attention.densities.density import Density
from attention.densities.lattice import lattice
from attention.grid import Grid
from attention.options import check_positive, check_whole_number

# Shape letters: B batch, R restarts, K components, N basis functions, L cells.

LARGEST_ERROR = 0.2  # of a fitted constant image, on average over the image


@dataclass(frozen=True)
class RadialBasis:
    """N Gaussians N(x; μ̃_j, variance·I), their means on a √N × √N lattice over [0, 1]²."""

    num_basis: int = 100
    variance: float = 0.001
    ridge: float = 0.01

    def __post_init__(self) -> None:
        check_whole_number("num_basis", self.num_basis, 4)
        if math.isqrt(self.num_basis) ** 2 != self.num_basis:
            raise ValueError(f"num_basis must be a square number, not {self.num_basis}")
        check_positive("basis_variance", self.variance)
        check_positive("ridge", self.ridge)

    def cell_weights(self, density: Density, grid: Grid) -> Tensor:
        """α = G Σ_k π_k r_k (B, R, L): c = Σ_ℓ α_ℓ V_ℓ. They may be negative, unlike a density."""
        r_BRKN = density.expectations(self.num_basis, self.variance)
        r_BRN = (density.pi[..., None, :] @ r_BRKN).squeeze(-2)
        return r_BRN @ self.ridge_operator(grid).squeeze(0).mT

    def ridge_operator(self, grid: Grid) -> Tensor:
        """G (B or 1, L, N): the value function V_B(x) = Bψ(x), Eq. (1), has B = V·G."""
        return grid.stack(partial(_ridge_operator, self))

    def evaluate(self, points: Tensor) -> Tensor:
        """ψ(x) (N, P) at points (P, 2)."""
        squared_NP = (points - lattice(self.num_basis, points.device)[:, None]).square().sum(-1)
        return torch.exp(-0.5 * squared_NP / self.variance) / (2 * math.pi * self.variance)


@cached
def _ridge_operator(basis: RadialBasis, height: int, width: int, device: torch.device) -> Tensor:
    """G = Fᵀ(FFᵀ + ridge·I)⁻¹ (L, N), with F (N, L) the basis at the cell centres."""
    basis_NL = basis.evaluate(Grid.of([(height, width)], device="cpu").positions[0])
    identity_NN = torch.eye(basis.num_basis, dtype=torch.float64, device="cpu")
    gram_NN = basis_NL @ basis_NL.mT + basis.ridge * identity_NN
    operator_LN = torch.cholesky_solve(basis_NL, torch.linalg.cholesky(gram_NN)).mT
    _warn_of_a_bad_fit(operator_LN, basis, height, width)
    return operator_LN.contiguous().to(device)


def _warn_of_a_bad_fit(operator_LN: Tensor, basis: RadialBasis, height: int, width: int) -> None:
    """Warn, once per shape, when a constant image is not fitted as one.

    On 9×9 cells every centre falls half-way between the basis functions of a 10×10 lattice, and
    the effective weights of a density sum to 2.8 instead of 1.
    """
    mean = mean_of_ones(operator_LN, basis)
    if abs(mean - 1) > LARGEST_ERROR:
        warnings.warn(
            f"a constant image on a {height}×{width} grid is fitted as {mean:.2f} instead of 1 by "
            f"{basis.num_basis} basis functions of variance {basis.variance}: continuous attention "
            f"will misjudge it; another grid or another num_basis fits better",
            stacklevel=2,
        )


def mean_of_ones(operator_LN: Tensor, basis: RadialBasis) -> float:
    """The mean over the unit square of what an image of ones is fitted as."""
    centres_N2, deviation = lattice(basis.num_basis, operator_LN.device), math.sqrt(basis.variance)
    above_N2, below_N2 = ((edge - centres_N2) / deviation for edge in (1, 0))
    inside_N2 = torch.special.ndtr(above_N2) - torch.special.ndtr(below_N2)
    return float(operator_LN.sum(0) @ inside_N2.prod(-1))
