"""A small model, a few questions, and steps on them: in one process or in several."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

import attention
import mcan
from data.batches import Piece, slice_rows
from mcan.processes import World
from mcan.run_folder import RunFolder
from mcan.schedule import StepRate
from mcan.step import Stepper, make_optimizer
from mcan.stopping import StoppedOnRequestError, StopRequest
from mcan.training import Plan, Training
from scripts.observer import Silent

ALONE = World(0, 1, torch.device("cpu"))
SIZES = mcan.Sizes(
    num_words=12, num_answers=6, num_features=5, embedding=6, hidden=8, num_layers=1,
    num_heads=2, pooling=8, output=8,
)  # fmt: skip
GRID = (10, 8)
# (questions of the global batch): one is smaller than the number of pieces it is cut into
GLOBAL_BATCHES = [np.arange(0, 5), np.arange(5, 6), np.arange(6, 13), np.arange(2, 4)]


@dataclass(frozen=True)
class SmallBatch:
    """What a step needs of a batch."""

    features: Tensor
    sizes: tuple[tuple[int, int], ...]
    tokens: Tensor
    targets: Tensor
    question_ids: Tensor
    weight: float

    def hold(self, wait: Any) -> None: ...


def take(piece: Piece, broken: Sequence[int] = ()) -> SmallBatch:
    """The batch of a piece; the features of `broken` questions hold a NaN."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(13, GRID[0] * GRID[1], 5, generator=generator, dtype=torch.float64)
    tokens = torch.randint(1, 12, (13, 4), generator=generator)
    targets = torch.rand(13, 6, generator=generator)
    features[list(broken), 3, 2] = torch.nan
    rows = torch.from_numpy(piece.rows)
    return SmallBatch(
        features[rows], (GRID,) * len(rows), tokens[rows], targets[rows], 100 + rows, piece.weight
    )


def build(dtype: torch.dtype = torch.float64) -> mcan.MCAN:
    torch.manual_seed(3)
    head = attention.build("multimodal", k_max=4)
    return mcan.MCAN(SIZES, head, dropout=0.0).to(dtype)


def make_stepper(model: torch.nn.Module, world: World = ALONE, **options: Any) -> Stepper:
    optimizer = make_optimizer(model, (0.9, 0.98), 1e-9)
    wrapped = DistributedDataParallel(model) if world.size > 1 else model
    return Stepper(wrapped, optimizer, world, **options)


def pieces_of(rows: np.ndarray, world: World, num_micro_batches: int) -> list[Piece]:
    count = world.size * num_micro_batches
    first = world.rank * num_micro_batches
    return [slice_rows(rows, first + n, count) for n in range(num_micro_batches)]


def take_steps(world: World, num_micro_batches: int) -> dict[str, Any]:
    """Weights, gradients and reports after several steps."""
    model = build()
    stepper = make_stepper(model, world)
    gradients, losses = [], []
    for step, rows in enumerate(GLOBAL_BATCHES):
        batches = [take(piece) for piece in pieces_of(rows, world, num_micro_batches)]
        reading = stepper.step(batches, step, rate=1e-3, stop=False).read()
        losses.append((reading.loss, reading.num_questions, reading.gradient_norm))
        gradients.append({n: p.grad.clone() for n, p in model.named_parameters()})
    return {"weights": model.state_dict(), "gradients": gradients, "losses": losses}


def run_training(
    world: World, folder: Path, broken: Sequence[int], ask_rank: int | None
) -> dict[str, Any]:
    """A run that saves at every step and meets a broken question or a request to stop."""
    model = build()
    # The request is made by a process itself while it draws its third step.
    request: list[StopRequest] = []

    def draw(epoch: int, first: int) -> Iterator[list[SmallBatch]]:
        for step in range(first, 6):
            if step == 2 and world.rank == ask_rank:
                request[0].is_made = True
            rows = GLOBAL_BATCHES[step % 4]
            yield [take(piece, broken) for piece in pieces_of(rows, world, 1)]

    rate = StepRate(peak=1e-3, warmup_steps=1, decay_share=0.0)
    plan = Plan(1, 6, rate, {}, seed=1, checkpoint_every_minutes=0, keep=9)
    training = Training(
        make_stepper(model, world), model.pool_image.head, plan, draw, lambda: {"accuracy": 1.0},
        lambda: {"model": model.state_dict()},
        RunFolder(folder, resume=False) if world.is_first else None, Silent(),
    )  # fmt: skip
    error = ""
    try:
        with StopRequest() as stop:
            request.append(stop)
            training._train_epoch(stop)
    except (FloatingPointError, StoppedOnRequestError) as problem:
        error = f"{type(problem).__name__}: {problem}"
    return {"error": error, "progress": training.progress, "weights": model.state_dict()}
