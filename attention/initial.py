"""Where EM starts: the initial parameters Θ(K) of Section 4.2."""

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import pad

from attention.cache import cached
from attention.densities.mixture import Mixture
from attention.grid import Grid
from attention.normalisers import BLOCK, cumulated

# Shape letters: B batch, R restarts, K components, L cells, S cells in whole blocks, M points.

Init = Literal["uniform", "weighted"]

INITIAL_VARIANCE = 0.001


def initial_mixture(means_BRK2: Tensor, sizes: tuple[int, ...]) -> Mixture:
    """π = 1/k and Σ = 0.001·I around the given means: Θ(k), with the size k of each restart.

    A restart with fewer than K components has π = 0 in the others.
    """
    batch, _, most, _ = means_BRK2.shape
    pi_RK, sigma_22, sizes_R = _initial_parameters(sizes, most, means_BRK2.device)
    return Mixture(
        pi_RK.expand(batch, -1, -1),
        means_BRK2,
        sigma_22.expand(*means_BRK2.shape, 2),
        sizes_R.expand(batch, -1),
    )


@cached
def _initial_parameters(
    sizes: tuple[int, ...], most: int, device: torch.device
) -> tuple[Tensor, Tensor, Tensor]:
    pi_RK = [[1 / size] * size + [0.0] * (most - size) for size in sizes]
    return (
        torch.tensor(pi_RK, dtype=torch.float64, device=device),
        INITIAL_VARIANCE * torch.eye(2, dtype=torch.float64, device=device),
        torch.tensor(sizes, device=device),
    )


def initial_means(uniforms: Tensor, weights_BL: Tensor, grid: Grid, init: Init) -> Tensor:
    """(B, …, 2): the uniforms (…, 2) themselves, or moved to where each image's weight is."""
    if init == "uniform":
        return uniforms.expand(len(grid), *uniforms.shape)
    means_BM2 = inverse_cdf(uniforms.view(-1, 2), weights_BL.detach(), grid)
    return means_BM2.view(len(grid), *uniforms.shape)


def inverse_cdf(uniforms_M2: Tensor, weights_BL: Tensor, grid: Grid) -> Tensor:
    """(B, M, 2): points with density w_ℓ over cell ℓ, from M pairs of uniforms.

    The first uniform picks the cell, and what is left of it places the point across the cell's
    columns; the second places it along the rows.
    """
    cumulative_BS = cumulated(pad(weights_BL, (0, -weights_BL.shape[1] % BLOCK)))
    # strictly below the total, so that rounding never picks a cell behind the last one with weight
    wanted_BM = uniforms_M2[:, 0] * (1 - 1e-12) * cumulative_BS[:, -1:]
    cell_BM = torch.searchsorted(cumulative_BS, wanted_BM, right=True)
    cell_BM = cell_BM.clamp(max=weights_BL.shape[1] - 1)
    weight_BM = weights_BL.gather(1, cell_BM)
    before_BM = cumulative_BS.gather(1, cell_BM) - weight_BM
    across_BM = ((wanted_BM - before_BM) / weight_BM.clamp(min=1e-300)).clamp(0, 1)
    along_BM = uniforms_M2[:, 1].expand_as(across_BM)
    centre_BM2 = grid.positions.gather(1, cell_BM[..., None].expand(-1, -1, 2))
    return centre_BM2 + (torch.stack([along_BM, across_BM], -1) - 0.5) * grid.cell_sides
