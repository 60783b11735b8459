"""A mixture of two-dimensional Gaussians: the attention density of Eq. (4)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from attention.grid import Grid
from attention.mass import rectangle_mass
from attention.quadratic import LOG_TWO_PI

# Shape letters: B batch, R restarts, K components, L cells, P points.


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

    def density(self, points: Tensor) -> Tensor:
        """p(x) of Eq. (4) at points (P, 2) or (B, P, 2) -> (B, R, P)."""
        points_BP2 = points.to(self.mu).expand(self.pi.shape[0], -1, -1)
        difference = points_BP2[:, None, None] - self.mu[..., None, :]  # (B, R, K, P, 2)
        log_density_BRKP = log_gaussian(difference, self.sigma[..., None, :, :])
        return (self.pi[..., None] * log_density_BRKP.exp()).sum(2)

    def cell_mass(self, grid: Grid) -> Tensor:
        """(B, R, L): the integral of p over each cell, which the density at its centre is not."""
        grid = grid.to(self.pi.device)
        centres_BL2, half_sides = grid.positions, grid.cell_sides / 2
        low, high = centres_BL2 - half_sides, centres_BL2 + half_sides
        total = torch.zeros_like(self.pi[..., :1]).expand(-1, -1, grid.num_cells)
        for k in range(self.pi.shape[-1]):  # one component at a time bounds the memory
            mass_BRL = rectangle_mass(
                self.mu[:, :, k, None], self.sigma[:, :, k, None], low[:, None], high[:, None]
            )
            total = total + self.pi[:, :, k, None] * mass_BRL
        return total * grid.mask[:, None]

    def restarts(self, index_BS: Tensor) -> "Mixture":
        """The restarts that each image's index (B, S) names: R becomes S."""

        def take(tensor: Tensor) -> Tensor:
            index = index_BS.view(*index_BS.shape, *[1] * (tensor.ndim - 2))
            return tensor.gather(1, index.expand(-1, -1, *tensor.shape[2:]))

        return Mixture(take(self.pi), take(self.mu), take(self.sigma), take(self.num_components))

    def padded(self, k_max: int) -> "Mixture":
        """The same mixtures with room for k_max components; those not in use have π = 0."""
        missing = k_max - self.pi.shape[-1]
        if missing == 0:
            return self
        batch, restarts = self.pi.shape[:2]
        identity = torch.eye(2, dtype=self.pi.dtype, device=self.pi.device)
        return Mixture(
            torch.cat([self.pi, self.pi.new_zeros(batch, restarts, missing)], 2),
            torch.cat([self.mu, self.mu.new_full((batch, restarts, missing, 2), 0.5)], 2),
            torch.cat([self.sigma, identity.expand(batch, restarts, missing, 2, 2)], 2),
            self.num_components,
        )


def concatenate(*mixtures: Mixture) -> Mixture:
    """The restarts of all, one after the other; they have the same K."""
    return Mixture(
        torch.cat([mixture.pi for mixture in mixtures], 1),
        torch.cat([mixture.mu for mixture in mixtures], 1),
        torch.cat([mixture.sigma for mixture in mixtures], 1),
        torch.cat([mixture.num_components for mixture in mixtures], 1),
    )


def log_gaussian(difference: Tensor, sigma: Tensor) -> Tensor:
    """log N(x; μ, Σ) for x − μ (…, 2) and Σ (…, 2, 2), with the 2×2 inverse in closed form."""
    suu, suv, svv = sigma[..., 0, 0], sigma[..., 0, 1], sigma[..., 1, 1]
    determinant = suu * svv - suv * suv
    du, dv = difference[..., 0], difference[..., 1]
    mahalanobis = (svv * du * du - 2 * suv * du * dv + suu * dv * dv) / determinant
    return -LOG_TWO_PI - 0.5 * determinant.log() - 0.5 * mahalanobis
