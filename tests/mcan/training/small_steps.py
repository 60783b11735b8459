"""A small model, a few questions, and steps on them: in one process or in several."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.parallel import DistributedDataParallel

import attention
import mcan
from data.batching.batch import Batch
from data.batching.sampler import MicroBatch, slice_rows
from mcan.head_schedule import ScheduledHead
from mcan.runtime.distributed import World
from mcan.runtime.stop_request import StoppedOnRequestError, StopRequest
from mcan.training.loop import TrainingRun
from mcan.training.run_folder import RunFolder
from mcan.training.step import Stepper, make_optimizer
from tests.small_runs import ALONE, compose

SIZES = mcan.Sizes(
    num_words=12, num_answers=6, num_features=5, embedding=6, hidden=8, num_layers=1,
    num_heads=2, pooling=8, output=8,
)  # fmt: skip
GRID = (10, 8)
# (questions of the global batch): one is smaller than the number of micro-batches it is cut into
GLOBAL_BATCHES = [np.arange(0, 5), np.arange(5, 6), np.arange(6, 13), np.arange(2, 4)]


def take(micro_batch: MicroBatch, broken: Sequence[int] = ()) -> Batch:
    """The tensors of a micro-batch; the features of `broken` questions hold a NaN."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(13, GRID[0] * GRID[1], 5, generator=generator, dtype=torch.float64)
    tokens = torch.randint(1, 12, (13, 4), generator=generator)
    targets = torch.rand(13, 6, generator=generator)
    features[list(broken), 3, 2] = torch.nan
    rows, weight = torch.from_numpy(micro_batch.rows), micro_batch.weight
    sizes, ids = (GRID,) * len(rows), 100 + rows
    return Batch(features[rows], sizes, None, tokens[rows], targets[rows], ids, ids, weight)


def build(dtype: torch.dtype = torch.float64) -> mcan.MCAN:
    torch.manual_seed(3)
    head = attention.build("multimodal", k_max=4)
    return mcan.MCAN(SIZES, head, dropout=0.0).to(dtype)


def make_stepper(model: torch.nn.Module, world: World = ALONE, **options: Any) -> Stepper:
    optimizer = make_optimizer(model, (0.9, 0.98), 1e-9)
    wrapped = DistributedDataParallel(model) if world.size > 1 else model
    return Stepper(wrapped, optimizer, world, **options)


def slices_of(rows: np.ndarray, world: World, num_micro_batches: int) -> list[MicroBatch]:
    count = world.size * num_micro_batches
    first = world.rank * num_micro_batches
    return [slice_rows(rows, first + n, count) for n in range(num_micro_batches)]


def take_steps(
    world: World, num_micro_batches: int, model: mcan.MCAN | None = None
) -> dict[str, Any]:
    """Weights, gradients and losses of several steps, on the CPU in the end."""
    model = build() if model is None else model
    stepper = make_stepper(model, world)
    gradients, losses = [], []
    for step, rows in enumerate(GLOBAL_BATCHES):
        batches = [take(micro_batch) for micro_batch in slices_of(rows, world, num_micro_batches)]
        result = stepper.step(batches, step, rate=1e-3, stop=False).read()
        losses.append((result.loss, result.num_questions, result.gradient_norm))
        gradients.append({n: p.grad.cpu().clone() for n, p in model.named_parameters()})
    weights = {name: weight.cpu() for name, weight in model.state_dict().items()}
    return {"weights": weights, "gradients": gradients, "losses": losses}


def assert_same_steps(result: dict[str, Any], expected: dict[str, Any], atol: float) -> None:
    """Both took the same steps; Adam divides gradients by their size, which shows rounding."""
    for name, weight in expected["weights"].items():
        torch.testing.assert_close(result["weights"][name], weight, atol=atol, rtol=0, msg=name)
    for step, gradients in enumerate(expected["gradients"]):
        for name, gradient in gradients.items():
            torch.testing.assert_close(
                result["gradients"][step][name], gradient, atol=1e-9, rtol=0, msg=f"{step} {name}"
            )
    for own, other in zip(result["losses"], expected["losses"], strict=True):
        assert own == pytest.approx(other, rel=1e-6)


class SmallData:
    """Six steps on the questions; a process may be asked to stop while it draws the third."""

    def __init__(self, world: World, broken: Sequence[int], ask_rank: int | None) -> None:
        self.world, self.broken, self.ask_rank = world, broken, ask_rank
        self.stop, self.sampler = StopRequest(), SimpleNamespace(num_steps=6)

    def batches(self, epoch: int, first_step: int) -> Iterator[list[Batch]]:
        for step in range(first_step, 6):
            if step == 2 and self.world.rank == self.ask_rank:
                self.stop.is_made = True
            rows = GLOBAL_BATCHES[step % 4]
            yield [take(micro_batch, self.broken) for micro_batch in slices_of(rows, self.world, 1)]

    def find_bad_features(self, question_ids: Sequence[int]) -> str | None:
        return None


def run_training(
    world: World, folder: Path, broken: Sequence[int], ask_rank: int | None
) -> dict[str, Any]:
    """A run that saves at every step and meets a broken question or a request to stop."""
    model, data = build(), SmallData(world, broken, ask_rank)
    head = ScheduledHead({"name": "multimodal"}, 1)
    settings = compose(
        ["optim.rate={name:constant,value:1e-3}", "runtime.checkpoint_every_minutes=0",
         "runtime.keep=9"]
    )  # fmt: skip
    run_folder = RunFolder(folder, resume=False) if world.is_first else None
    validation: Any = None  # the epoch does not come to its end
    stepper = make_stepper(model, world)
    run = TrainingRun(settings, model, head, stepper, data, validation, {}, run_folder)
    error = ""
    try:
        with data.stop as stop:
            run.train_epoch(stop)
    except (FloatingPointError, StoppedOnRequestError) as problem:
        error = f"{type(problem).__name__}: {problem}"
    return {"error": error, "progress": run.progress, "weights": model.state_dict()}
