"""What a run shows: a progress bar, and TensorBoard."""

import time
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

from mcan.step import Reading
from mcan.training import Progress


class Silent:
    """Shows nothing: every process but the first."""

    def start_epoch(self, progress: Progress, steps_per_epoch: int) -> None: ...

    def see_step(self, reading: Reading, rate: float) -> None: ...

    def end_epoch(self, metrics: dict[str, Any], global_step: int) -> None: ...


class Display:
    """A bar with speed, loss, learning rate and time left; scalars for TensorBoard."""

    def __init__(self, folder: Path, global_step: int, num_epochs: int, show: bool) -> None:
        # purge_step drops what an interrupted run wrote after the checkpoint it goes on from
        self.board = SummaryWriter(str(folder / "tensorboard"), purge_step=global_step)
        self.num_epochs, self.show = num_epochs, show
        self.bar: tqdm[Any] | None = None
        self.start, self.num_questions = time.monotonic(), 0

    def start_epoch(self, progress: Progress, steps_per_epoch: int) -> None:
        self.start, self.num_questions = time.monotonic(), 0
        self.bar = tqdm(
            total=steps_per_epoch,
            initial=progress.step,
            desc=f"epoch {progress.epoch}/{self.num_epochs}",
            unit="step",
            disable=not self.show,
            mininterval=1.0,
        )

    def see_step(self, reading: Reading, rate: float) -> None:
        assert self.bar is not None
        self.num_questions += reading.num_questions
        loss = reading.loss / max(1, reading.num_questions)
        self.bar.set_postfix_str(
            f"{self.questions_per_second():.0f} questions/s, loss {loss:.3f}, rate {rate:.2g}",
            refresh=False,
        )
        self.bar.update()
        if reading.step % 20 == 0:
            self.board.add_scalar("train/loss", loss, reading.step)
            self.board.add_scalar("train/learning_rate", rate, reading.step)
            self.board.add_scalar("train/gradient_norm", reading.gradient_norm, reading.step)

    def questions_per_second(self) -> float:
        return self.num_questions / max(1e-9, time.monotonic() - self.start)

    def end_epoch(self, metrics: dict[str, Any], global_step: int) -> None:
        assert self.bar is not None
        self.bar.close()
        for name, value in metrics.items():
            if isinstance(value, (int, float)):
                # at the epoch's last step: purge_step is the first step of the next one
                self.board.add_scalar(f"epoch/{name}", value, global_step - 1)
        self.board.flush()
        if self.show:
            shares = metrics.get("component_shares")
            print(
                f"epoch {metrics['epoch']}: loss {metrics['loss']:.3f}, "
                f"validation accuracy {metrics['accuracy']:.2f}"
                + (f", K* {shares}" if shares else ""),
                flush=True,
            )
