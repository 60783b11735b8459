"""The head contract: scores and values in, a context out. A head owns no parameters.

The score network and the output projection belong to the model, so that every model has the same
parameters and a checkpoint trained under one head loads under any other.
"""

import contextlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from attention.candidates import Candidates
from attention.grid import Grid
from attention.mixture import Mixture

# Shape letters: B batch, L cells, D features.


@dataclass(frozen=True)
class AttentionOutput:
    """context (B, D); weights (B, L), the discrete ones; the density, and its rivals at test time.

    mixture has R = 1 and is None for discrete attention; candidates are there only where the
    number of components was selected.
    """

    context: Tensor
    weights: Tensor
    mixture: Mixture | None = None
    candidates: Candidates | None = None


class Head(nn.Module, ABC):
    """Checks shapes, turns scores into weights and leaves the rest to `attend`.

    Values are checked only with validate=True: looking at them would stop a GPU.
    """

    def __init__(self, validate: bool = False) -> None:
        super().__init__()
        if not isinstance(validate, bool):
            raise ValueError(f"validate must be True or False, not {validate!r}")
        self.validate = validate

    @abstractmethod
    def attend(
        self, weights: Tensor, values: Tensor, grid: Grid, num_components: int | None, step: int
    ) -> AttentionOutput:
        """From float64 weights (B, L), zero in padding, and values (B, L, D) to the output."""

    def forward(
        self,
        scores: Tensor,
        values: Tensor,
        grid: Grid,
        num_components: int | None = None,
        step: int = 0,
    ) -> AttentionOutput:
        """scores (B, L), values (B, L, D) -> context (B, D) in the values' dtype, and the rest.

        num_components fixes K where the head has one; step is the global training step, from
        which (with the seed) a head draws what it draws at random.
        """
        self._check(scores, values, grid)
        with without_autocast(scores.device):
            grid = grid.to(scores.device)
            weights = softmax_over_cells(scores, grid)
            output = self.attend(weights, values, grid, num_components, step)
        shown = torch.promote_types(scores.dtype, torch.float32)  # no float64 leaves by surprise
        return replace(output, weights=output.weights.to(shown))

    def _check(self, scores: Tensor, values: Tensor, grid: Grid) -> None:
        expected = (len(grid), grid.num_cells)
        if scores.shape != expected:
            raise ValueError(
                f"scores of shape {tuple(scores.shape)} do not fit a grid of {expected[0]} images "
                f"padded to {expected[1]} cells"
            )
        if values.ndim != 3 or values.shape[:2] != expected:
            raise ValueError(
                f"values of shape {tuple(values.shape)} do not fit scores of shape {expected}: "
                f"they must be (images, cells, features)"
            )
        if not values.is_floating_point():
            raise ValueError(f"values must be floating-point numbers, not {values.dtype}")
        if self.validate and not bool(scores[grid.to(scores.device).mask].isfinite().all()):
            raise ValueError("scores hold a value that is not finite")


def softmax_over_cells(scores: Tensor, grid: Grid) -> Tensor:
    """(B, L) float64: w = softmax(scores) over the real cells, exactly zero in padding."""
    scores = scores.double()
    if not grid.is_uniform:
        scores = scores.masked_fill(~grid.mask, -torch.inf)
    return scores.softmax(-1)


def weighted_sum(weights: Tensor, values: Tensor) -> Tensor:
    """(B, R, D): Σ_ℓ weights_ℓ values_ℓ for weights (B, R, L), in the values' dtype."""
    return weights.to(values.dtype) @ values


def without_autocast(device: torch.device) -> contextlib.AbstractContextManager[object]:
    """Autocast off: EM in bfloat16 is garbage, and the context keeps the dtype of the values."""
    if torch.amp.is_autocast_available(device.type):
        return torch.autocast(device.type, enabled=False)
    return contextlib.nullcontext()
