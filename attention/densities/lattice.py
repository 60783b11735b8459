"""Gaussian basis functions N(x; μ̃_j, variance·I) whose means lie on a √N × √N lattice over [0, 1]².

What a density needs of them to compute its expectations, on each device.
"""

import math

import torch
from torch import Tensor

from attention.cache import cached
from attention.densities.gaussian import monomials


@cached
def lattice_side(num_basis: int, device: torch.device) -> Tensor:
    """(√N,): the coordinates of the lattice, the same along rows and columns."""
    return torch.linspace(0, 1, math.isqrt(num_basis), dtype=torch.float64, device=device)


@cached
def lattice(num_basis: int, device: torch.device) -> Tensor:
    """(N, 2): the means μ̃_j, row by row."""
    side = lattice_side(num_basis, device)
    return torch.cartesian_prod(side, side)


@cached
def lattice_monomials(num_basis: int, device: torch.device) -> Tensor:
    """(6, N): φ(μ̃_j)."""
    return monomials(lattice(num_basis, device)).mT.contiguous()


@cached
def basis_covariance(variance: float, device: torch.device) -> Tensor:
    """(2, 2): variance·I."""
    return variance * torch.eye(2, dtype=torch.float64, device=device)
