"""TensorBoard: its file, curves over steps and epochs, and settings to compare runs by."""

import contextlib
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter

from mcan.training.step import StepResult
from mcan.training.trackers.tracker import (
    STEPS_PER_POINT,
    TrackedRun,
    epoch_values,
    step_values,
)

COMPARED = ("seed", "data", "model", "attention", "optim", "init_from", "glove")


class EventFile:
    """TensorBoard's file; says so once when its disk takes no more, and the run continues."""

    def __init__(self, folder: Path, first_step: int) -> None:
        self.folder = folder
        self._writer: SummaryWriter | None = None
        threading.excepthook = ignore_writer_thread
        with self._giving_up():
            # purge_step drops what an interrupted run wrote after the checkpoint it resumes from
            self._writer = SummaryWriter(str(folder), purge_step=first_step)

    def add(self, kind: str, *values: Any, **options: Any) -> None:
        """Call SummaryWriter.add_<kind>."""
        if self._writer is not None:
            with self._giving_up():
                getattr(self._writer, f"add_{kind}")(*values, **options)

    def flush(self) -> None:
        """Bring what was added to the disk."""
        if self._writer is not None:
            with self._giving_up():
                self._writer.flush()

    @contextlib.contextmanager
    def _giving_up(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._writer = None
            print(
                f"WARNING: {self.folder} cannot be written: {error.strerror}; the run continues "
                f"without curves",
                file=sys.stderr,
                flush=True,
            )


def ignore_writer_thread(failure: threading.ExceptHookArgs) -> None:
    """TensorBoard's thread hands its error on to whoever writes next: no need to print it too."""
    if not type(failure.thread).__module__.startswith("tensorboard."):
        threading.__excepthook__(failure)


class Curves:
    """Loss, learning rate and gradient norm over steps; metrics over epochs; the settings."""

    def __init__(self, events: EventFile, run: TrackedRun) -> None:
        self.events, self.num_epochs = events, run.num_epochs
        self.settings = list_settings(run.config)

    def start_epoch(self, epoch: int, first_step: int) -> None: ...

    def on_step(self, result: StepResult, rate: float) -> None:
        if result.step % STEPS_PER_POINT == 0:
            for name, value in step_values(result, rate).items():
                self.events.add("scalar", name, value, result.step)

    def end_epoch(self, metrics: Mapping[str, Any]) -> None:
        step = metrics["step"] - 1  # the epoch's last: purge_step is the first of the next one
        for name, value in epoch_values(metrics).items():
            self.events.add("scalar", name, value, step)
        if metrics["epoch"] == self.num_epochs:
            accuracy = {"hparam/accuracy": metrics["accuracy"]}
            self.events.add("hparams", self.settings, accuracy, run_name=".", global_step=step)
        self.events.flush()


def list_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings by which TensorBoard compares runs, as values that it can show."""
    flat = {key: value for name in COMPARED for key, value in flatten(name, config[name]).items()}
    return {
        key: value if isinstance(value, (bool, int, float, str)) else str(value)
        for key, value in flat.items()
    }


def flatten(name: str, setting: Any) -> dict[str, Any]:
    """Dotted keys and values of a setting."""
    if not isinstance(setting, Mapping):
        return {name: setting}
    return {
        key: value
        for part, inner in setting.items()
        for key, value in flatten(f"{name}.{part}", inner).items()
    }
