"""A rectangle's probability under a Gaussian: erf along one axis, quadrature along the other."""

import math

import torch
from torch import Tensor

from attention.cache import cached

NODES = 20  # Gauss–Legendre nodes per panel
REACH = 9.0  # standard deviations beyond which a Gaussian holds less than 1e-18


def rectangle_mass(mu: Tensor, sigma: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """∫ N(x; μ, Σ) over the rectangle [low, high]; μ, low, high (…, 2), Σ (…, 2, 2) -> (…).

    With v the column, p(u, v) = p(v) p(u | v): the row is integrated by erf, and the column over
    panels that end where the integrand bends, so that a component far smaller than the rectangle,
    or one squeezed onto a line, is integrated as well as a broad one.
    """
    deviation = sigma[..., 1, 1].sqrt()
    slope = sigma[..., 0, 1] / sigma[..., 1, 1]  # of E[u | v] in v
    spread = (sigma[..., 0, 0] - slope * sigma[..., 0, 1]).sqrt()  # of u given v
    edges = _panel_edges(mu, deviation, slope, spread, low, high)  # (…, E)
    starts, widths = edges[..., :-1, None], edges.diff(dim=-1)[..., None]
    nodes, weights = gauss_legendre(edges.device)
    v = starts + widths * nodes  # (…, E − 1, NODES)

    def normal_cdf(u: Tensor) -> Tensor:
        centre = mu[..., 0, None, None] + slope[..., None, None] * (v - mu[..., 1, None, None])
        probability: Tensor = torch.special.ndtr(
            (u[..., None, None] - centre) / spread[..., None, None]
        )
        return probability

    standard = (v - mu[..., 1, None, None]) / deviation[..., None, None]
    density_v = torch.exp(-0.5 * standard**2) / (
        math.sqrt(2 * math.pi) * deviation[..., None, None]
    )
    inside = normal_cdf(high[..., 0]) - normal_cdf(low[..., 0])
    mass: Tensor = (widths * weights * density_v * inside).sum((-2, -1))
    return mass


def _panel_edges(
    mu: Tensor, deviation: Tensor, slope: Tensor, spread: Tensor, low: Tensor, high: Tensor
) -> Tensor:
    """Sorted column coordinates (…, E) between which the integrand is smooth."""
    centre = mu[..., 1]
    edges = [low[..., 1], high[..., 1]]
    edges += [centre + reach * deviation for reach in (-REACH, -3.0, 3.0, REACH)]
    # E[u | v] crosses the rectangle's lower and upper row here, within a band of width spread/slope
    flat = slope.abs() < 1e-9
    safe_slope = torch.where(flat, 1.0, slope)
    for row in (low[..., 0], high[..., 0]):
        crossing = centre + (row - mu[..., 0]) / safe_slope
        band = 6 * spread / safe_slope.abs()
        edges += [torch.where(flat, centre, crossing + side * band) for side in (-1, 0, 1)]
    like = torch.zeros_like(edges[0] + centre)  # of the shape that all of them broadcast to
    stacked = torch.stack([edge.expand_as(like) for edge in edges], dim=-1)
    first = torch.maximum(low[..., 1], centre - REACH * deviation)
    last = torch.maximum(torch.minimum(high[..., 1], centre + REACH * deviation), first)
    return stacked.clamp(first[..., None], last[..., None]).sort(dim=-1).values


@cached
def gauss_legendre(device: torch.device) -> tuple[Tensor, Tensor]:
    """Nodes and weights on [0, 1], by Golub and Welsch: eigenvalues of the Jacobi matrix."""
    order = torch.arange(1, NODES, dtype=torch.float64, device="cpu")
    off_diagonal = order / torch.sqrt(4 * order**2 - 1)
    jacobi = torch.diag(off_diagonal, 1) + torch.diag(off_diagonal, -1)
    nodes, vectors = torch.linalg.eigh(jacobi)
    return ((nodes + 1) / 2).to(device), (vectors[0] ** 2).to(device)
