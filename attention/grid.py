"""The grid of image regions that attention looks at: where its cells are, and which are real."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from attention.cache import cached
from attention.densities.gaussian import monomials
from attention.options import check_whole_number

ShapeFunction = Callable[[int, int, torch.device], Tensor]


@dataclass(frozen=True)
class Grid:
    """The (height, width) in cells of every image of a batch, padded to the one with most cells.

    Cells are flattened row by row. Sizes are Python ints, so that no shape is ever read back from
    a device; tensors are made on the device itself and shared between grids of one shape: read
    them, do not write to them.
    """

    sizes: tuple[tuple[int, int], ...]
    device: torch.device

    @classmethod
    def of(
        cls, sizes: Iterable[tuple[int, int]], device: torch.device | str | None = None
    ) -> "Grid":
        """A grid for the given (height, width) of each image, as Python ints."""
        check = partial(check_whole_number, "a grid's height or width", least=1)
        checked = tuple((check(height), check(width)) for height, width in sizes)
        if not checked:
            raise ValueError("a grid needs the (height, width) of at least one image")
        return cls(checked, torch.empty(0, device=device).device)

    def to(self, device: torch.device) -> "Grid":
        """The same grid with its tensors on another device."""
        return self if device == self.device else Grid(self.sizes, device)

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def num_cells(self) -> int:
        """L: the cells of the largest image, to which all are padded."""
        return max(height * width for height, width in set(self.sizes))

    @property
    def is_uniform(self) -> bool:
        """Whether all images have one shape, so that one set of tensors serves the whole batch."""
        return len(set(self.sizes)) == 1

    @property
    def positions(self) -> Tensor:
        """(B, L, 2) float64: cell centres ((i+½)/h, (j+½)/w), row then column; 0 in padding."""
        return self.stack(_positions).expand(len(self), -1, -1)

    @property
    def mask(self) -> Tensor:
        """(B, L) bool: True on real cells."""
        return self.stack(_real_cells).expand(len(self), -1)

    @property
    def monomials(self) -> Tensor:
        """(B, 6, L) float64: φ(x) = [1, u, v, u², uv, v²] at cell centres; φ(0) in padding."""
        phi_B6L = self.stack(_monomials).mT.contiguous()
        if not self.is_uniform:
            phi_B6L[:, 0] = 1  # a zero there would meet log 0 of a component without mass
        return phi_B6L.expand(len(self), -1, -1)

    @property
    def cell_sides(self) -> Tensor:
        """(B or 1, 1, 2) float64: the height 1/h and the width 1/w of a cell."""
        return self.stack(_cell_sides)

    def check_cells(self, name: str, shape: torch.Size) -> None:
        """A tensor over the cells must be of shape (B, L)."""
        if shape != (len(self), self.num_cells):
            raise ValueError(
                f"{name} of shape {tuple(shape)} do not fit a grid of {len(self)} images padded to "
                f"{self.num_cells} cells"
            )

    def stack(self, per_shape: ShapeFunction) -> Tensor:
        """`per_shape(height, width, device)` of every image, zero-padded along the cells.

        The leading axis is 1 when all images have one shape.
        """
        if self.is_uniform:
            return per_shape(*self.sizes[0], self.device).unsqueeze(0)
        tensors = [per_shape(height, width, self.device) for height, width in self.sizes]
        return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True)


@cached
def _positions(height: int, width: int, device: torch.device) -> Tensor:
    rows = (torch.arange(height, dtype=torch.float64, device=device) + 0.5) / height
    columns = (torch.arange(width, dtype=torch.float64, device=device) + 0.5) / width
    return torch.cartesian_prod(rows, columns).view(-1, 2)  # (L, 2)


@cached
def _real_cells(height: int, width: int, device: torch.device) -> Tensor:
    return torch.ones(height * width, dtype=torch.bool, device=device)


@cached
def _monomials(height: int, width: int, device: torch.device) -> Tensor:
    phi_L6 = monomials(_positions(height, width, device))
    return phi_L6.mT.contiguous().mT  # each monomial of all cells together, as products want it


@cached
def _cell_sides(height: int, width: int, device: torch.device) -> Tensor:
    sides = [torch.full((1,), 1 / n, dtype=torch.float64, device=device) for n in (height, width)]
    return torch.stack(sides, dim=-1)  # (1, 2)
