"""Dropout whose masks cost a CPU little: of each random word of 64 bits four entries are decided.

torch decides one entry with each word, on one core alone, however many there are. Elsewhere, and
inside torch.compile, all of this is torch's own dropout.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

LEVELS = 1 << 16  # of a quarter of a word: probabilities are rounded to multiples of 1 / LEVELS


class Dropout(nn.Dropout):
    """nn.Dropout, with the cheap masks where they can be had."""

    def forward(self, x: Tensor) -> Tensor:
        return drop(x, self.p, self.training)


def drop(x: Tensor, p: float, training: bool) -> Tensor:
    """x with entries zeroed with probability p and the others raised, in training."""
    if not (training and 0 < p < 1 and draws_cheaply(x)):
        return dropout(x, p, training)
    return x * as_kept(draw_quarters(x.shape), p, x.dtype).mul_(kept_scale(p))


def draws_cheaply(x: Tensor) -> bool:
    """Whether masks for a tensor are drawn here rather than by torch."""
    wide = x.dtype in (torch.float32, torch.float64)
    return x.device.type == "cpu" and wide and not torch.compiler.is_compiling()


def draw_quarters(shape: tuple[int, ...]) -> Tensor:
    """Uniform int16 numbers of a shape, from torch's own generator for the CPU."""
    count = torch.Size(shape).numel()
    words = torch.empty((count + 3) // 4, dtype=torch.int64, device="cpu").random_(-(2**63), None)
    return words.view(torch.int16)[:count].view(shape)


def as_kept(quarters: Tensor, p: float, dtype: torch.dtype) -> Tensor:
    """0 with probability p, else 1, as numbers: products with truth values are far slower."""
    kept = torch.empty(quarters.shape, dtype=dtype, device="cpu")
    return torch.ge(quarters, num_dropped(p) - LEVELS // 2, out=kept)


def kept_scale(p: float) -> float:
    """One over the share that is really kept."""
    return LEVELS / (LEVELS - num_dropped(p))


def num_dropped(p: float) -> int:
    """The number of levels that are dropped; a level at least is kept."""
    return min(round(p * LEVELS), LEVELS - 1)
