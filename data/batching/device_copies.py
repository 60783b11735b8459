"""Batches on their device: the next one is copied while the present one is computed."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, cuda

from data.batching.batch import Batch


def copy_ahead(batches: Iterable[Batch], device: torch.device, keep: int = 1) -> Iterator[Batch]:
    """The batches with their tensors on the device; the last `keep` drawn stay valid.

    Draw them on the stream that computes with them. On a CPU they are there already.
    """
    return DeviceCopies(device, keep).iterate(batches) if device.type == "cuda" else iter(batches)


class DeviceCopies:
    """Copies on a stream of their own, into `keep` + 1 sets of buffers on the device in turn.

    Computing waits for the copy of its own batch, and a copy for what computed with the batch that
    was in its buffers. The host waits for neither, but to overwrite what is not yet copied.
    """

    def __init__(self, device: torch.device, keep: int = 1) -> None:
        self.device, self.stream = device, cuda.Stream(device)
        self.buffers: list[dict[str, Tensor]] = [{} for _ in range(keep + 1)]

    def iterate(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Yield each batch when the copy of the one after it has been started."""
        compute = cuda.current_stream(self.device)
        turns = zip(batches, itertools.cycle(self.buffers), strict=False)
        copies = (self.start(batch, buffers, compute) for batch, buffers in turns)
        try:
            present = next(copies, None)
            while present is not None:
                following = next(copies, None)
                batch, copied = present
                compute.wait_event(copied)
                yield batch
                present = following
        finally:
            compute.wait_stream(self.stream)  # which may use the buffers' memory from here on

    def start(
        self, batch: Batch, buffers: dict[str, Tensor], compute: cuda.Stream
    ) -> tuple[Batch, cuda.Event]:
        """Start to copy a batch; where it will be, and the event of its arrival."""
        tensors = {"features": batch.features, "tokens": batch.tokens}
        if batch.targets is not None:
            tensors["targets"] = batch.targets
        if batch.image_index is not None:
            tensors["device_index"] = batch.image_index
        places: dict[str, Any] = {
            name: self.reserve(buffers, name, tensor) for name, tensor in tensors.items()
        }
        self.stream.wait_stream(compute)
        with cuda.stream(self.stream):
            for name, tensor in tensors.items():
                places[name].copy_(tensor, non_blocking=True)
            copied = self.stream.record_event()
        batch.keep_until(copied.synchronize)
        return replace(batch, buffer=None, **places), copied

    def reserve(self, buffers: dict[str, Tensor], name: str, like: Tensor) -> Tensor:
        """A tensor of that shape over the buffer of that name, which grows where it must."""
        count = like.numel()
        if name not in buffers or buffers[name].numel() < count:
            buffers[name] = torch.empty(count, dtype=like.dtype, device=self.device)
        return buffers[name][:count].view(like.shape)
