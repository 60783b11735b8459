"""A mixture of two-dimensional Gaussians: the attention density of the paper."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from attention.densities.cell_mass import rectangle_mass
from attention.densities.gaussian import log_gaussian, monomials
from attention.densities.lattice import basis_covariance, lattice_monomials
from attention.grid import Grid

# Shape letters: B batch, R restarts, K components, L cells, P points, N basis functions.


@dataclass(frozen=True)
class Mixture:
    """R fitted mixtures for each of B images, in image coordinates (row, column) in [0, 1].

    pi (B, R, K) mixing coefficients, mu (B, R, K, 2), sigma (B, R, K, 2, 2), all float64;
    num_components (B, R) int64: the components in use come first, the others have pi = 0.
    """

    pi: Tensor
    mu: Tensor
    sigma: Tensor
    num_components: Tensor

    @property
    def support(self) -> float | None:
        """None: a Gaussian is positive everywhere."""
        return None

    def density(self, points: Tensor) -> Tensor:
        """p(x) = Σ_k π_k N(x; μ_k, Σ_k), Eq. (4), at points (P, 2) or (B, P, 2) -> (B, R, P)."""
        phi_BP6 = monomials(points.to(self.mu).expand(len(self.pi), -1, -1))
        coefficients_BRK6 = log_gaussian(self.mu, self.sigma)
        density_BRKP = (coefficients_BRK6 @ phi_BP6[:, None].mT).exp()
        return (self.pi[..., None, :] @ density_BRKP).squeeze(-2)

    def cell_mass(self, grid: Grid) -> Tensor:
        """(B, R, L): the integral of p over each cell, which the density at its centre is not."""
        grid = grid.to(self.pi.device)
        centres_BL2, half_sides = grid.positions, grid.cell_sides / 2
        low, high = centres_BL2 - half_sides, centres_BL2 + half_sides
        total = torch.zeros_like(self.pi[..., :1]).expand(-1, -1, grid.num_cells)
        for k in range(self.pi.shape[-1]):  # one component at a time bounds the memory
            mass_BRL = self.rectangle_mass(
                self.mu[:, :, k, None], self.sigma[:, :, k, None], low[:, None], high[:, None]
            )
            total = total + self.pi[:, :, k, None] * mass_BRL
        return total * grid.mask[:, None]

    def expectations(self, num_basis: int, variance: float) -> Tensor:
        """r (B, R, K, N): r_kj = E_{p_k}[ψ_j] = N(μ_k; μ̃_j, Σ_k + Σ̃_j), the integral of Eq. (3)."""
        device = self.pi.device
        coefficients_BRK6 = log_gaussian(self.mu, self.sigma + basis_covariance(variance, device))
        return (coefficients_BRK6 @ lattice_monomials(num_basis, device)).exp()

    @staticmethod
    def rectangle_mass(mu: Tensor, sigma: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """∫ N(x; μ, Σ) over the rectangle [low, high]; μ, low, high (…, 2), Σ (…, 2, 2) -> (…)."""
        return rectangle_mass(mu, sigma, low, high)

    def restarts(self, index_BS: Tensor) -> "Mixture":
        """The restarts that each image's index (B, S) names: R becomes S."""

        def take(tensor: Tensor) -> Tensor:
            index = index_BS.view(*index_BS.shape, *[1] * (tensor.ndim - 2))
            return tensor.gather(1, index.expand(-1, -1, *tensor.shape[2:]))

        return self._each(take)

    def images(self, rows: slice) -> "Mixture":
        """The mixtures of some of the images."""
        return self._each(lambda tensor: tensor[rows])

    def to(self, device: torch.device | str) -> "Mixture":
        """The same mixtures on another device."""
        return self._each(lambda tensor: tensor.to(device))

    def contiguous(self) -> "Mixture":
        """The same mixtures with every tensor laid out in the order of its axes."""
        return self._each(Tensor.contiguous)

    def _each(self, change: Callable[[Tensor], Tensor]) -> "Mixture":
        return type(self)(*map(change, (self.pi, self.mu, self.sigma, self.num_components)))
