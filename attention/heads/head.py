"""The head contract: scores and values in, a context out. A head owns no parameters.

The score network and the output projection belong to the model, so that every model has the same
parameters and a checkpoint trained under one head loads under any other.
"""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, get_args

import torch
from torch import Tensor, nn

from attention.densities.density import Density
from attention.grid import Grid
from attention.normalisers import NORMALISERS, Normaliser
from attention.options import check_choice
from attention.selection import Candidates

# Shape letters: B batch, L cells, D features.


@dataclass(frozen=True)
class AttentionOutput:
    """What a head gives: context (B, D), discrete weights (B, L), and the density that it fitted.

    mixture has R = 1 and is None for discrete attention; candidates are there only where the
    number of components was selected.
    """

    context: Tensor
    weights: Tensor
    mixture: Density | None = None
    candidates: Candidates | None = None


class Head(nn.Module, ABC):
    """Checks shapes, turns scores into weights and leaves the rest to `attend`.

    Values are checked only with validate=True: looking at them would stop a GPU. A head with a
    constructor of its own has the options that it passes on to this one, by keyword.
    """

    schedulable: ClassVar[Mapping[str, type]] = {}
    """Options that a schedule may set on a built head between epochs, and the type of each."""
    uses_positions: ClassVar[bool] = True
    """Whether it reads where cells are; one that does not also attends to regions of no grid."""

    def __init__(self, validate: bool = False, normaliser: Normaliser = "softmax") -> None:
        super().__init__()
        if not isinstance(validate, bool):
            raise ValueError(f"validate must be True or False, not {validate!r}")
        self.validate = validate
        self.normaliser: Normaliser = check_choice("normaliser", normaliser, get_args(Normaliser))

    @abstractmethod
    def attend(
        self, weights: Tensor, values: Tensor, grid: Grid, num_components: int | None, step: int
    ) -> AttentionOutput:
        """From float64 weights (B, L), zero in padding, and values (B, L, D) to the output."""

    def normalise(self, scores: Tensor, grid: Grid) -> Tensor:
        """Attention weights (B, L) float64 from scores (B, L): a distribution over real cells.

        They are not negative, zero in padding, and sum to 1 over each image. A head that
        overrides this decides itself what the option `normaliser` means.
        """
        return NORMALISERS[self.normaliser](scores, grid)

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
            weights = self.normalise(scores, grid)
            output = self.attend(weights, values, grid, num_components, step)
        shown = torch.promote_types(scores.dtype, torch.float32)  # float64 only where it was given
        return replace(output, weights=output.weights.to(shown))

    def _check(self, scores: Tensor, values: Tensor, grid: Grid) -> None:
        grid.check_cells("scores", scores.shape)
        if values.ndim != 3 or values.shape[:2] != scores.shape:
            raise ValueError(
                f"values of shape {tuple(values.shape)} do not fit scores of shape "
                f"{tuple(scores.shape)}: they must be (images, cells, features)"
            )
        if not values.is_floating_point():
            raise ValueError(f"values must be floating-point numbers, not {values.dtype}")
        if self.validate and not bool(scores[grid.to(scores.device).mask].isfinite().all()):
            raise ValueError("scores hold a value that is not finite")


def without_autocast(device: torch.device) -> contextlib.AbstractContextManager[object]:
    """Autocast off: EM in bfloat16 is garbage, and the context keeps the dtype of the values."""
    if torch.amp.is_autocast_available(device.type):
        return torch.autocast(device.type, enabled=False)
    return contextlib.nullcontext()
