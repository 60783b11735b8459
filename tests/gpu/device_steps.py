"""Steps of a small model on any device, with batches in the memory that a loader would use."""

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import torch

import attention
import mcan
from data.batching.batch import Batch
from data.batching.sampler import MicroBatch
from mcan.runtime.distributed import World
from mcan.training.step import Stepper
from tests.mcan.training.small_steps import (
    make_stepper,
    take,
    take_steps,
)

Variant = tuple[str, dict[str, Any]]  # a head and its options, as tests/attention/examples has them
MULTIMODAL: Variant = ("multimodal", {})
SIZES = mcan.Sizes(
    num_words=12, num_answers=6, num_features=5, embedding=16, hidden=32, num_layers=1,
    num_heads=4, pooling=32, output=64,
)  # fmt: skip


def build(device: torch.device, variant: Variant = MULTIMODAL, dropout: float = 0.0) -> mcan.MCAN:
    """The same float32 weights on every device."""
    name, options = variant
    torch.manual_seed(3)
    return mcan.MCAN(SIZES, attention.build(name, **options), dropout).to(device)


def take_pinned(
    micro_batch: MicroBatch, device: torch.device, broken: tuple[int, ...] = ()
) -> Batch:
    """A batch of float16 features, in pinned memory for a GPU."""
    batch = take(micro_batch, broken)
    changed = {"features": batch.features.half()}
    if device.type == "cuda":
        names = ("features", "tokens", "targets", "question_ids")
        changed = {n: changed.get(n, getattr(batch, n)).pin_memory() for n in names}
    return dataclasses.replace(batch, **changed)


def start(device: torch.device, variant: Variant, **options: Any) -> tuple[mcan.MCAN, Stepper]:
    """A model and its stepper, in a single process."""
    model = build(device, variant, options.pop("dropout", 0.0))
    return model, make_stepper(model, World(0, 1, device), **options)


def take_device_steps(world: World, num_micro_batches: int) -> dict[str, Any]:
    """Several steps of the model in float64."""
    return take_steps(world, num_micro_batches, build(world.device).double())


@contextlib.contextmanager
def synchronisation_forbidden(device: torch.device) -> Iterator[None]:
    """On CUDA, an operation that synchronises with the device raises an error."""
    if device.type != "cuda":
        yield
        return
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")
