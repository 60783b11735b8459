"""How scores become attention weights: probability vectors over the real cells of an image."""

import torch
from torch import Tensor

from attention.grid import Grid

# Shape letters: B batch, L cells.


def softmax_over_cells(scores_BL: Tensor, grid: Grid) -> Tensor:
    """(B, L) float64: p = softmax(f) over the real cells, exactly zero in padding."""
    scores_BL = scores_BL.double()
    if not grid.is_uniform:
        scores_BL = scores_BL.masked_fill(~grid.mask, -torch.inf)
    return scores_BL.softmax(-1)
