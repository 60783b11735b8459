"""What every attention density offers, whatever family its components belong to."""

from typing import Protocol

import torch
from torch import Tensor

from attention.grid import Grid

# Shape letters: B batch, R restarts, K components, L cells, P points, N basis functions.


class Density(Protocol):
    """R mixtures for each of B images, in image coordinates (row, column) in [0, 1]."""

    @property
    def pi(self) -> Tensor:
        """(B, R, K): mixing coefficients, zero for components not in use."""

    @property
    def mu(self) -> Tensor:
        """(B, R, K, 2): means."""

    @property
    def sigma(self) -> Tensor:
        """(B, R, K, 2, 2): covariances."""

    @property
    def num_components(self) -> Tensor:
        """(B, R) int64: how many components are in use; they come first."""

    @property
    def support(self) -> float | None:
        """The (x − μ)ᵀ Σ⁻¹ (x − μ) from which on a component is zero; None if it never is."""

    def images(self, rows: slice) -> "Density":
        """The densities of some of the images."""

    def to(self, device: torch.device | str) -> "Density":
        """The same densities on another device."""

    def density(self, points: Tensor) -> Tensor:
        """p(x) at points (P, 2) or (B, P, 2) -> (B, R, P)."""

    def cell_mass(self, grid: Grid) -> Tensor:
        """(B, R, L): the integral of p over each cell."""

    def expectations(self, num_basis: int, variance: float) -> Tensor:
        """(B, R, K, N): each component's mean of the Gaussians N(x; μ̃_j, variance·I) of a basis.

        Their means μ̃_j lie on a √N × √N lattice over [0, 1]².
        """
