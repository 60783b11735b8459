"""Where EM starts: means drawn from seeds alone, so that there is no state to save."""

import hashlib
from typing import Literal

import torch
from torch import Tensor

from attention.cache import made_once
from attention.grid import Grid

# Shape letters: B batch, R restarts, K components, L cells.

Init = Literal["uniform", "weighted"]


def training_draw(seed: int, step: int, k_max: int) -> tuple[int, Tensor]:
    """K uniform in 1…k_max and uniforms (1, k_max, 2) for its means, from (seed, step) alone."""
    num_components = 1 + mixed_seed("components", seed, step) % k_max
    return num_components, draw_uniforms((1, k_max, 2), "means", seed, step)


@made_once
def restart_uniforms(seed: int, k_max: int, num_restarts: int, device: torch.device) -> Tensor:
    """((k_max − 1)·R, k_max, 2): uniforms for R restarts of k = 2…k_max, padded with ½.

    Those of one k come from (seed, k) alone: they are the same for every sample and every k_max.
    """
    shape = (k_max - 1, num_restarts, k_max, 2)
    uniforms = torch.full(shape, 0.5, dtype=torch.float64, device="cpu")
    for k in range(2, k_max + 1):
        uniforms[k - 2, :, :k] = draw_uniforms((num_restarts, k, 2), "restarts", seed, k)
    return uniforms.flatten(0, 1).to(device)


def draw_uniforms(shape: tuple[int, ...], *numbers: int | str) -> Tensor:
    """Uniforms in [0, 1) on the CPU, from the numbers alone."""
    generator = torch.Generator("cpu").manual_seed(mixed_seed(*numbers))
    return torch.rand(shape, generator=generator, dtype=torch.float64, device="cpu")


def mixed_seed(*numbers: int | str) -> int:
    """63 bits that mix all the numbers, so that neighbouring steps are unrelated."""
    plain = [number if isinstance(number, str) else int(number) for number in numbers]
    digest = hashlib.blake2b(repr(plain).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def initial_means(uniforms_RK2: Tensor, weights_BL: Tensor, grid: Grid, init: Init) -> Tensor:
    """(B, R, K, 2): the uniforms themselves, or pushed to where each image's weight is."""
    if init == "uniform":
        return uniforms_RK2.expand(len(grid), -1, -1, -1)
    means_BM2 = inverse_cdf(uniforms_RK2.flatten(0, 1), weights_BL.detach(), grid)
    return means_BM2.view(len(grid), *uniforms_RK2.shape)


def inverse_cdf(uniforms_M2: Tensor, weights_BL: Tensor, grid: Grid) -> Tensor:
    """(B, M, 2): points with density w_ℓ over cell ℓ, from M pairs of uniforms.

    The first uniform picks the cell, and what is left of it places the point across the cell's
    columns; the second places it along the rows.
    """
    cumulative_BL = weights_BL.cumsum(1)
    # strictly below the total, so that rounding never picks a cell behind the last one with weight
    wanted_BM = uniforms_M2[:, 0] * (1 - 1e-12) * cumulative_BL[:, -1:]
    cell_BM = torch.searchsorted(cumulative_BL, wanted_BM, right=True)
    cell_BM = cell_BM.clamp(max=weights_BL.shape[1] - 1)
    weight_BM = weights_BL.gather(1, cell_BM)
    before_BM = cumulative_BL.gather(1, cell_BM) - weight_BM
    across_BM = ((wanted_BM - before_BM) / weight_BM.clamp(min=1e-300)).clamp(0, 1)
    along_BM = uniforms_M2[:, 1].expand_as(across_BM)
    centre_BM2 = grid.positions.gather(1, cell_BM[..., None].expand(-1, -1, 2))
    return centre_BM2 + (torch.stack([along_BM, across_BM], -1) - 0.5) * grid.cell_sides
