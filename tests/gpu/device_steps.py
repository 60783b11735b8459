"""Steps of a small model on any device, from batches that lie where a loader would leave them."""

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import torch

import attention
import mcan
from data.batches import Piece
from mcan.processes import World
from mcan.step import Stepper
from tests.mcan.small_steps import GLOBAL_BATCHES, SmallBatch, make_stepper, pieces_of, take

SIZES = mcan.Sizes(
    num_words=12, num_answers=6, num_features=5, embedding=16, hidden=32, num_layers=1,
    num_heads=4, pooling=32, output=64,
)  # fmt: skip


def build(device: torch.device, head: str = "multimodal", dropout: float = 0.0) -> mcan.MCAN:
    """The same float32 weights on every device."""
    torch.manual_seed(3)
    return mcan.MCAN(SIZES, attention.build(head), dropout).to(device)


def take_pinned(piece: Piece, device: torch.device, broken: tuple[int, ...] = ()) -> SmallBatch:
    """A batch of float16 features, in pinned memory if it is to go to a GPU."""
    batch = take(piece, broken)
    changed = {"features": batch.features.half()}
    if device.type == "cuda":
        names = ("features", "tokens", "targets", "question_ids")
        changed = {n: changed.get(n, getattr(batch, n)).pin_memory() for n in names}
    return dataclasses.replace(batch, **changed)


def start(device: torch.device, head: str, **options: Any) -> tuple[mcan.MCAN, Stepper]:
    """A model and what steps it, alone."""
    model = build(device, head, options.pop("dropout", 0.0))
    return model, make_stepper(model, World(0, 1, device), **options)


def take_steps(world: World, num_micro_batches: int) -> dict[str, Any]:
    """Weights, gradients and losses of several steps in float64, on the CPU in the end."""
    model = build(world.device).double()
    stepper = make_stepper(model, world)
    gradients, losses = [], []
    for step, rows in enumerate(GLOBAL_BATCHES):
        batches = [take(piece) for piece in pieces_of(rows, world, num_micro_batches)]
        reading = stepper.step(batches, step, rate=1e-3, stop=False).read()
        losses.append((reading.loss, reading.num_questions, reading.gradient_norm))
        gradients.append({name: p.grad.cpu() for name, p in model.named_parameters()})
    weights = {name: weight.cpu() for name, weight in model.state_dict().items()}
    return {"weights": weights, "gradients": gradients, "losses": losses}


@contextlib.contextmanager
def refusing_to_wait(device: torch.device) -> Iterator[None]:
    """On CUDA an operation that waits for the device raises inside."""
    if device.type != "cuda":
        yield
        return
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")
