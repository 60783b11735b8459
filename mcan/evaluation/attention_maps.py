"""Where a model looks: the attention to every question as a distribution over its grid's cells."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from attention import AttentionOutput, Density, Grid
from data.batching.batch import Batch
from mcan.evaluation.predict import attend, components_in_use, gather_rows
from mcan.network.model import MCAN
from mcan.runtime.distributed import World

AT_A_TIME = 16  # questions whose densities are integrated at once: the quadrature takes memory


@dataclass(frozen=True)
class AttentionMaps:
    """One row per question, by ascending question id."""

    question_ids: Tensor  # (Q,) int64
    num_components: Tensor  # (Q,) int64: K*; 0 for discrete attention
    cells: Tensor  # (Q, L) float64: sums to 1 over the grid, zero past its cells


@torch.inference_mode()
def map_attention(
    model: MCAN,
    batches: Iterable[Batch],
    num_cells: int,
    world: World,
    dtype: torch.dtype,
) -> AttentionMaps:
    """Attention maps of the test-time head for this process's batches, gathered from all processes.

    `num_cells` is the L that all maps are padded to: the cells of the largest grid there is.
    """
    rows = (map_batch(model, batch, num_cells, world, dtype) for batch in batches)
    maps = AttentionMaps(*gather_rows(rows, world))
    lost = maps.question_ids[~maps.cells.isfinite().all(1)].tolist()
    if lost:
        raise ValueError(f"attention to {len(lost)} questions, such as {lost[0]}, is not finite")
    return maps


def map_batch(
    model: MCAN, batch: Batch, num_cells: int, world: World, dtype: torch.dtype
) -> tuple[Tensor, ...]:
    """A batch's rows of `AttentionMaps`."""
    _, attended = attend(model, batch, world, dtype)
    grid = Grid.of(batch.question_sizes(), device=world.device)
    cells = pad(spread_over_cells(attended, grid), (0, num_cells - grid.num_cells))
    return batch.question_ids, components_in_use(attended)[0], cells.cpu()  # too large to stay


def spread_over_cells(attended: AttentionOutput, grid: Grid) -> Tensor:
    """(B, L) float64, rows sum to 1: the weights themselves, or the density's mass in each cell."""
    if attended.mixture is None:
        cells = attended.weights.double()
    else:
        cells = torch.cat(list(integrate(attended.mixture, grid)))
    return cells / cells.sum(1, keepdim=True)  # a density's tails lie outside the image


def integrate(mixture: Density, grid: Grid) -> Iterator[Tensor]:
    """The mass (b, L) of the cells of a grid of (B, L), some of its images at a time."""
    for start in range(0, len(grid), AT_A_TIME):
        some = slice(start, start + AT_A_TIME)
        part_of_grid = Grid.of(grid.sizes[some], device=grid.device)
        mass = mixture.images(some).cell_mass(part_of_grid)[:, 0]
        yield pad(mass, (0, grid.num_cells - mass.shape[1]))
