"""One optimisation step: forward, backward, update, with nothing that waits for the device."""

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.nn.parallel import DistributedDataParallel

from attention import Grid
from data.batching.batch import Batch
from mcan.runtime.distributed import World
from mcan.runtime.precision import autocast_to


class PendingResult:
    """The result of a step on its way to the CPU: it is read one step late.

    values (5,): the loss of all questions and their number, whether something was not finite,
    whether a process was asked to stop (summed over all processes), and the gradient's norm.
    """

    def __init__(self, step: int, values: Tensor, own_loss: Tensor, question_ids: Tensor) -> None:
        self.step, self.question_ids = step, question_ids
        self._values = torch.cat([values, own_loss[None]]).to("cpu", non_blocking=True)
        self._arrived = torch.cuda.Event() if values.is_cuda else None
        if self._arrived is not None:
            self._arrived.record()

    def read(self) -> "StepResult":
        """Wait for the numbers, which a step later have long arrived."""
        if self._arrived is not None:
            self._arrived.synchronize()
        loss, count, nonfinite, stop, norm, own = self._values.tolist()
        questions = [] if math.isfinite(own) else self.question_ids.tolist()
        return StepResult(self.step, loss, round(count), norm, nonfinite > 0, questions, stop > 0)


@dataclass(frozen=True)
class StepResult:
    """The result of a step, over all processes except for `nonfinite_questions`."""

    step: int
    loss: float  # summed over the questions
    num_questions: int
    gradient_norm: float
    is_nonfinite: bool  # loss or gradient: no weight was changed
    nonfinite_questions: list[int]  # this process's, if its own loss is not finite
    is_stop_requested: bool  # of any process

    @property
    def mean_loss(self) -> float:
        """Per question."""
        return self.loss / max(1, self.num_questions)


class Stepper:
    """Model, optimizer and dtype: all that one step takes."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        world: World,
        dtype: torch.dtype = torch.float32,
        clip: float | None = None,
    ) -> None:
        self.model, self.optimizer, self.world = model, optimizer, world
        self.dtype, self.clip = dtype, clip
        self.scaler = torch.amp.GradScaler(world.device.type, enabled=dtype is torch.float16)
        self.parameters = [p for p in model.parameters() if p.requires_grad]

    def step(self, batches: Sequence[Batch], step: int, rate: float, stop: bool) -> PendingResult:
        """Micro-batches of one global batch -> an update of the weights, and the result."""
        device = self.world.device
        self.optimizer.zero_grad(set_to_none=True)
        total = torch.zeros((), device=device)
        for number, batch in enumerate(batches):
            with self._no_sync(last=number == len(batches) - 1):
                total += self._accumulate(batch, step)
        if self.scaler.is_enabled():
            self.scaler.unscale_(self.optimizer)
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients)
        nonfinite = self._update(norm, total, rate)
        count = sum(len(batch.tokens) for batch in batches if batch.weight > 0)
        flags = [
            total,
            torch.full_like(total, count),
            nonfinite,
            torch.full_like(total, float(stop)),
        ]
        values = torch.cat([self.world.sum(torch.stack(flags)), norm[None].to(total)])
        question_ids = torch.cat([batch.question_ids for batch in batches])
        return PendingResult(step, values, total, question_ids)

    def _accumulate(self, batch: Batch, step: int) -> Tensor:
        """Add a micro-batch's gradients; its summed loss, detached."""
        device = self.world.device
        assert batch.targets is not None
        # they are there already, unless a batch has not come through `copy_ahead`
        features = batch.features.to(device, non_blocking=True)
        tokens = batch.tokens.to(device, non_blocking=True)
        targets = batch.targets.to(device, non_blocking=True)
        grid = Grid.of(batch.question_sizes(), device=device)
        index = {"image_index": batch.image_index, "device_index": batch.device_index}
        with autocast_to(self.dtype, device):
            logits = self.model(features, grid, tokens, step=step, **index)
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
        loss = binary_cross_entropy_with_logits(wide, targets.to(wide), reduction="sum")
        # A logit that overflowed has a finite gradient: make it NaN as well, for all to see.
        factor = torch.where(loss.detach().isfinite(), 1.0, torch.nan)
        # DDP averages over processes; the loss is a mean over the global batch: hence the size
        self.scaler.scale(loss * factor * (batch.weight * self.world.size)).backward()
        return loss.detach() if batch.weight > 0 else torch.zeros_like(loss)

    def _update(self, norm: Tensor, total: Tensor, rate: float) -> Tensor:
        """Move the weights, unless a gradient is not finite; 1 where the run must stop."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        nonfinite = (~norm.isfinite()).float()
        if self.clip is not None:
            torch.nn.utils.clip_grads_with_norm_(self.parameters, self.clip, norm)
        if self.scaler.is_enabled():  # it handles an overflow itself, but not a bad loss
            self.scaler.step(self.optimizer)
            self.scaler.update()
            return (~total.isfinite()).float()
        self.optimizer.found_inf = nonfinite  # type: ignore[attr-defined]  # fused Adam then does nothing
        self.optimizer.step()
        return nonfinite

    def _no_sync(self, last: bool) -> contextlib.AbstractContextManager[Any]:
        """Gradients are exchanged once a step, with the last micro-batch."""
        if isinstance(self.model, DistributedDataParallel) and not last:
            return self.model.no_sync()
        return contextlib.nullcontext()


def make_optimizer(model: nn.Module, betas: Sequence[float], epsilon: float) -> torch.optim.Adam:
    """Adam in one fused kernel; the learning rate is set at every step."""
    first, second = betas
    trained = [each for each in model.parameters() if each.requires_grad]
    return torch.optim.Adam(trained, lr=0.0, betas=(first, second), eps=epsilon, fused=True)
