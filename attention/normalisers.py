"""How scores become attention weights: probability vectors over the real cells of an image.

Softmax is the paper's. Sparsemax (Martins and Astudillo, 2016) and entmax-1.5 (Peters et al., 2019)
give cells below a threshold τ a weight of exactly 0. τ is found among the thresholds τ_k of the k
highest scores: from one sorted list and its cumulated sums, in a fixed number of operations.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from attention.cache import cached
from attention.grid import Grid

# Shape letters: B batch, L cells, S sorted cells (L, rounded up to whole blocks).

Normaliser = Literal["softmax", "entmax15", "sparsemax"]
BLOCK = 16  # cells whose sums are cumulated in one matrix product
LOWEST = -2.0  # a score more than 1 below the highest has no weight: τ_1 = −1, and τ is no lower


def softmax_over_cells(scores_BL: Tensor, grid: Grid) -> Tensor:
    """(B, L) float64: p = softmax(f) over the real cells, exactly zero in padding."""
    return real_scores(scores_BL, grid).softmax(-1)


def sparsemax_over_cells(scores_BL: Tensor, grid: Grid) -> Tensor:
    """(B, L) float64: p = [f − τ]₊ over the real cells, the projection onto the simplex."""
    return Sparsemax.apply(real_scores(scores_BL, grid))  # type: ignore[no-any-return, no-untyped-call]


def entmax15_over_cells(scores_BL: Tensor, grid: Grid) -> Tensor:
    """(B, L) float64: p = [f/2 − τ]₊² over the real cells."""
    return Entmax15.apply(real_scores(scores_BL, grid))  # type: ignore[no-any-return, no-untyped-call]


NORMALISERS: Mapping[Normaliser, Callable[[Tensor, Grid], Tensor]] = {
    "softmax": softmax_over_cells,
    "entmax15": entmax15_over_cells,
    "sparsemax": sparsemax_over_cells,
}


def real_scores(scores_BL: Tensor, grid: Grid) -> Tensor:
    """The scores in float64, −∞ in padding."""
    scores_BL = scores_BL.double()
    return scores_BL if grid.is_uniform else scores_BL.masked_fill(~grid.mask, -torch.inf)


class Sparsemax(torch.autograd.Function):
    """p = [f − τ]₊ with Σ p = 1."""

    @staticmethod
    def forward(ctx: Any, scores_BL: Tensor) -> Tensor:
        shifted_BL = below_highest(scores_BL)
        weights_BL = (shifted_BL - sparsemax_threshold(shifted_BL)).clamp(min=0)
        ctx.save_for_backward(weights_BL)
        return weights_BL

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient_BL: Tensor) -> Tensor:
        return gradient_within_support(gradient_BL, ctx.saved_tensors[0].sign())


class Entmax15(torch.autograd.Function):
    """p = [f/2 − τ]₊² with Σ p = 1."""

    @staticmethod
    def forward(ctx: Any, scores_BL: Tensor) -> Tensor:
        shifted_BL = below_highest(scores_BL / 2)
        root_BL = (shifted_BL - entmax15_threshold(shifted_BL)).clamp(min=0)
        ctx.save_for_backward(root_BL)
        return root_BL.square()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient_BL: Tensor) -> Tensor:
        return gradient_within_support(gradient_BL, ctx.saved_tensors[0])


def below_highest(scores_BL: Tensor) -> Tensor:
    """Scores minus the highest, cut off where no weight can be: precise for scores of any size."""
    return (scores_BL - scores_BL.amax(-1, keepdim=True)).clamp(min=LOWEST)


def sparsemax_threshold(shifted_BL: Tensor) -> Tensor:
    """τ (B, 1): the highest τ_k = (Σ_{j≤k} f_j − 1) / k, since τ_k rises as long as f_k > τ_k."""
    sorted_BS, inverse_S = sort_cells(shifted_BL)
    return ((cumulated(sorted_BS) - 1) * inverse_S).amax(-1, keepdim=True)


def entmax15_threshold(shifted_BL: Tensor) -> Tensor:
    """τ (B, 1): the highest min(τ_k, f_k), where τ_k = m_k − √(1/k − v_k).

    m_k and v_k are mean and variance of the k highest (halved) scores. In the support
    f_k ≥ τ ≥ τ_k, with τ_k = τ for the last k; outside it f_k ≤ τ.
    """
    sorted_BS, inverse_S = sort_cells(shifted_BL)
    sums_2BS = cumulated(torch.stack([sorted_BS, sorted_BS.square()]))
    mean_BS, square_BS = (sums_2BS * inverse_S).unbind()
    radicand_BS = (inverse_S - square_BS).addcmul(mean_BS, mean_BS)
    threshold_BS = mean_BS - radicand_BS.clamp(min=0).sqrt()
    return torch.minimum(threshold_BS, sorted_BS).amax(-1, keepdim=True)


def sort_cells(shifted_BL: Tensor) -> tuple[Tensor, Tensor]:
    """(B, S): scores from high to low, filled up with cells that have no weight; (S,): all 1/k."""
    sorted_BL = shifted_BL.sort(-1, descending=True).values
    sorted_BS = pad(sorted_BL, (0, -sorted_BL.shape[-1] % BLOCK), value=LOWEST)
    return sorted_BS, inverse_counts(sorted_BS.shape[-1], shifted_BL.device)


def cumulated(numbers_BS: Tensor) -> Tensor:
    """Σ_{j≤k} of every row, as products with triangles: CUDA's cumsum is not deterministic."""
    blocks = numbers_BS.view(*numbers_BS.shape[:-1], -1, BLOCK)
    within = blocks @ triangle(BLOCK, 0, blocks.device)
    before = within[..., -1] @ triangle(blocks.shape[-2], 1, blocks.device)
    return (within + before[..., None]).flatten(-2)


@cached
def triangle(size: int, diagonal: int, device: torch.device) -> Tensor:
    """(size, size): x @ triangle sums all j ≤ k (diagonal 0) or all j < k (diagonal 1)."""
    return torch.ones(size, size, dtype=torch.float64, device=device).triu(diagonal)


@cached
def inverse_counts(size: int, device: torch.device) -> Tensor:
    """1/k for k = 1…size."""
    return torch.arange(1, size + 1, dtype=torch.float64, device=device).reciprocal()


def gradient_within_support(gradient_BL: Tensor, slope_BL: Tensor) -> Tensor:
    """Jᵀg = s·(g − Σ s g / Σ s), where s = p^(2−α) is 0 outside the support: 1 or √p inside."""
    mean_B1 = (slope_BL * gradient_BL).sum(-1, keepdim=True) / slope_BL.sum(-1, keepdim=True)
    return slope_BL * (gradient_BL - mean_B1)
