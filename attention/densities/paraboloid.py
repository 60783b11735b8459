"""A mixture of truncated paraboloids: densities that are zero outside an ellipse.

With mean μ and covariance S, p(x) = [1 − d²/6]₊ / (3π √|S|) for d² = (x − μ)ᵀ S⁻¹ (x − μ): the
two-dimensional continuous sparsemax of Martins et al. (2020). It is x = μ + √6·L(z₁, z₂) with
S = LLᵀ and z on the unit disc with density (2/π)(1 − |z|²); z₁ alone gives one coordinate of x, and
z₂ = t·√(1 − z₁²) has the density ¾(1 − t²) on the chord, which can be integrated in closed form.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from attention.cache import cached
from attention.densities.cell_mass import gauss_legendre
from attention.densities.lattice import lattice_side
from attention.densities.mixture import Mixture

# Shape letters: B batch, R restarts, K components, P points, N basis functions, M = √N of a side,
# Q nodes of a quadrature.

SUPPORT = 6.0  # d² at the edge
NODES = 112  # for z₁: 1e-6 for deviations up to 0.3, 1e-4 for the largest an image can hold
SMALLEST_VARIANCE = 1e-12  # of a row, so that dividing by it has a finite gradient
SHORT_CHORD = 4e-4  # squared half chords below it, where the closed form cancels, take a series


@dataclass(frozen=True)
class ParaboloidMixture(Mixture):
    """R mixtures of K truncated paraboloids for each of B images; the fields are those of Mixture.

    pi, mu and sigma are the mixing coefficients, means and covariances, as for Gaussians.
    """

    @property
    def support(self) -> float:
        """A component is zero from d² = 6 on."""
        return SUPPORT

    def density(self, points: Tensor) -> Tensor:
        """p(x) = Σ_k π_k [1 − d_k²/6]₊ / (3π √|S_k|) at points (P, 2) or (B, P, 2) -> (B, R, P)."""
        points_BP2 = points.to(self.mu).expand(len(self.pi), -1, -1)
        offset_BRKP2 = points_BP2[:, None, None] - self.mu[..., None, :]
        variance, slope, spread = (x[..., None] for x in conditional(self.sigma))  # (B, R, K, 1)
        along, across = offset_BRKP2[..., 0], offset_BRKP2[..., 1] - slope * offset_BRKP2[..., 0]
        squared_BRKP = along**2 / variance + across**2 / spread
        peak_BRK1 = 1 / (3 * math.pi * (variance * spread).sqrt())
        density_BRKP = peak_BRK1 * (1 - squared_BRKP / SUPPORT).clamp_min(0)
        return (self.pi[..., None, :] @ density_BRKP).squeeze(-2)

    def expectations(self, num_basis: int, variance: float) -> Tensor:
        """r (B, R, K, N): r_kj = E_{p_k}[ψ_j], closed in z₂ and a sum over nodes in z₁.

        ψ is a product over rows and columns, and the row of x depends on z₁ alone, so that r_k is
        a product of two matrices, (M, Q) and (Q, M).
        """
        nodes_Q, weights_Q = chord_rule(self.mu.device)
        side_M, scale = lattice_side(num_basis, self.mu.device), math.sqrt(2 * variance)
        row_variance, slope, spread = (x[..., None] for x in conditional(self.sigma))
        along_Q = (SUPPORT * row_variance).sqrt() * nodes_Q  # (B, R, K, Q), as all that follow
        rows_Q = self.mu[..., :1] + along_Q
        columns_Q = self.mu[..., 1:] + slope * along_Q  # the middle of the chord
        squared_half_Q = SUPPORT * spread * (1 - nodes_Q**2) / scale**2
        rows_QM = torch.exp(-(((rows_Q[..., None] - side_M) / scale) ** 2))
        columns_QM = chord_mean((columns_Q[..., None] - side_M) / scale, squared_half_Q[..., None])
        r_BRKMM = (rows_QM * weights_Q[:, None]).mT @ columns_QM
        return r_BRKMM.flatten(-2) / (math.pi * scale**2)

    @staticmethod
    def rectangle_mass(mu: Tensor, sigma: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """∫ p(x) over the rectangle [low, high]; μ, low, high (…, 2), S (…, 2, 2) -> (…)."""
        return rectangle_mass(mu, sigma, low, high)


def conditional(sigma: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The row's variance, the slope of the column's mean in it, and the column's variance given it.

    The Cholesky factor of S (…, 2, 2) in closed form: S₁₁, L₂₁/L₁₁ and L₂₂².
    """
    variance = sigma[..., 0, 0].clamp_min(SMALLEST_VARIANCE)
    slope = sigma[..., 0, 1] / variance
    return variance, slope, sigma[..., 1, 1] - slope * sigma[..., 0, 1]


def chord_mean(distance: Tensor, squared_half: Tensor) -> Tensor:
    """∫ ¾(1 − t²) exp(−(m + ht)²) dt over −1 ≤ t ≤ 1, from m and h².

    With a = m − h, b = m + h and E = ∫ exp(−y²) dy from a to b it is
    ¾ ((h² − m² − ½)E + ½(b exp(−a²) − a exp(−b²))) / h³. A short chord takes the Taylor series in
    h², which ends before h⁶; it needs no root, so that a chord of no length has a gradient.
    """
    is_short = squared_half < SHORT_CHORD
    half = torch.where(is_short, 1.0, squared_half).sqrt()
    m = -distance.abs()  # the integral is even in m, and erfc is accurate on this side
    a, b = m - half, m + half
    between = 0.5 * math.sqrt(math.pi) * (torch.erfc(-b) - torch.erfc(-a))
    edges = 0.5 * (b * torch.exp(-(a**2)) - a * torch.exp(-(b**2)))
    closed = 0.75 * ((half**2 - m**2 - 0.5) * between + edges) / half**3
    second, fourth = (2 * m**2 - 1) / 5, (4 * m**4 - 12 * m**2 + 3) / 70
    series = torch.exp(-(m**2)) * (1 + squared_half * (second + squared_half * fourth))
    return torch.where(is_short, series, closed)


@cached
def chord_rule(device: torch.device) -> tuple[Tensor, Tensor]:
    """Nodes and weights (Q,) for means under z₁, whose density is proportional to (1 − z²)^{3/2}.

    Gauss and Chebyshev's rule for the weight √(1 − z²) has its nodes at cosines; the other factor
    1 − z² goes to the weights.
    """
    angles = torch.arange(1, NODES + 1, dtype=torch.float64, device="cpu") * math.pi / (NODES + 1)
    weights = 8 / (3 * (NODES + 1)) * torch.sin(angles) ** 4
    return torch.cos(angles).to(device), weights.to(device)


def rectangle_mass(mu: Tensor, sigma: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """∫ p(x) over the rectangle [low, high]; μ, low, high (…, 2), S (…, 2, 2) -> (…).

    The column is integrated in closed form along each chord of the ellipse, the row over the angle
    θ with z₁ = cos θ. Between the panels' edges the integrand is a polynomial in cos θ and sin θ.
    """
    variance, slope, spread = conditional(sigma)
    reach = (SUPPORT * variance).sqrt()
    edges = _panel_edges(mu, sigma, reach, slope, low, high)  # (…, E)
    nodes, weights = gauss_legendre(edges.device)
    widths = edges.diff(dim=-1)[..., None]
    theta = edges[..., :-1, None] + widths * nodes  # (…, E − 1, Q)
    along = reach[..., None, None] * torch.cos(theta)
    middle = mu[..., 1, None, None] + slope[..., None, None] * along
    half = (SUPPORT * spread).sqrt()[..., None, None] * torch.sin(theta)

    def below(column: Tensor) -> Tensor:
        t = ((column[..., None, None] - middle) / half.clamp_min(1e-30)).clamp(-1, 1)
        return 0.75 * t - 0.25 * t**3

    inside = below(high[..., 1]) - below(low[..., 1])
    density = 8 / (3 * math.pi) * torch.sin(theta) ** 4
    mass: Tensor = (widths * weights * density * inside).sum((-2, -1))
    return mass


def _panel_edges(
    mu: Tensor, sigma: Tensor, reach: Tensor, slope: Tensor, low: Tensor, high: Tensor
) -> Tensor:
    """Sorted angles (…, E): where the ellipse crosses the sides of the rectangle, or it ends."""

    def angle(cosine: Tensor) -> Tensor:
        return torch.acos(cosine.clamp(-1, 1))

    first, last = (angle((side[..., 0] - mu[..., 0]) / reach) for side in (high, low))
    edges = [first, last]
    column_reach = (SUPPORT * sigma[..., 1, 1]).sqrt()
    turn = angle(slope * reach / column_reach)  # its cosine is the correlation
    for side in (low, high):
        crossing = angle((side[..., 1] - mu[..., 1]) / column_reach)
        edges += [(turn - crossing).abs(), math.pi - (math.pi - turn - crossing).abs()]
    stacked = torch.stack(edges, dim=-1).clamp(first[..., None], last[..., None])
    return stacked.sort(dim=-1).values
