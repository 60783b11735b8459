"""The progress bar of a run, and a line for every epoch."""

import time
from collections.abc import Mapping
from typing import Any

from tqdm import tqdm

from mcan.evaluation.metrics import format_shares
from mcan.training.step import StepResult


class ProgressBar:
    """A bar over an epoch's steps, with speed, loss, learning rate and time left."""

    def __init__(self, num_epochs: int, steps_per_epoch: int) -> None:
        self.num_epochs, self.steps_per_epoch = num_epochs, steps_per_epoch
        self.bar: tqdm[Any] | None = None
        self.start, self.num_questions = time.monotonic(), 0

    def start_epoch(self, epoch: int, first_step: int) -> None:
        self.start, self.num_questions = time.monotonic(), 0
        self.bar = tqdm(
            total=self.steps_per_epoch,
            initial=first_step,
            desc=f"epoch {epoch}/{self.num_epochs}",
            unit="step",
        )

    def on_step(self, result: StepResult, rate: float) -> None:
        assert self.bar is not None
        self.num_questions += result.num_questions
        speed = self.num_questions / max(1e-9, time.monotonic() - self.start)
        self.bar.set_postfix_str(
            f"{speed:.0f} questions/s, loss {result.mean_loss:.3f}, rate {rate:.2g}", refresh=False
        )
        self.bar.update()

    def end_epoch(self, metrics: Mapping[str, Any]) -> None:
        assert self.bar is not None
        self.bar.close()
        shares = metrics.get("component_shares")
        print(
            f"epoch {metrics['epoch']}: loss {metrics['loss']:.3f}, "
            f"validation accuracy {metrics['accuracy']:.2f}"
            + (f", K* {format_shares(shares)}" if shares else ""),
            flush=True,
        )
