"""The training loop: epochs of steps, validation, checkpoints; resumable at any step."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NoReturn, Protocol

import torch

from attention.initial import mixed_seed
from mcan.run_folder import RunFolder
from mcan.schedule import LearningRate, Schedule
from mcan.step import Questions, Reading, Report, Stepper
from mcan.stopping import StoppedOnRequestError, StopRequest


@dataclass(frozen=True)
class Progress:
    """Where a run is. All that is random is drawn from (seed, global_step): no more state."""

    epoch: int = 1  # the one being trained
    step: int = 0  # steps done in it
    global_step: int = 0
    loss_sum: float = 0.0  # over the questions of this epoch so far
    num_questions: int = 0
    best: float = -1.0  # highest validation accuracy so far


@dataclass(frozen=True)
class Plan:
    """How long, how fast, and the head's values for every epoch."""

    num_epochs: int
    steps_per_epoch: int
    learning_rate: LearningRate
    schedules: dict[str, Schedule]  # by the name of the head's attribute
    seed: int
    checkpoint_every_minutes: float
    keep: int

    def __post_init__(self) -> None:
        if self.num_epochs < 1:
            raise ValueError(f"the number of epochs is {self.num_epochs}, expected at least 1")

    def head_values(self, epoch: int) -> dict[str, float]:
        """λ and the iteration counts in force in an epoch."""
        values = {name: schedule.at(epoch) for name, schedule in self.schedules.items()}
        return {n: round(v) if n.endswith("iterations") else v for n, v in values.items()}

    def rate(self, progress: Progress) -> float:
        """The learning rate of the step that comes."""
        num_steps = self.num_epochs * self.steps_per_epoch
        return self.learning_rate.at(progress.epoch, progress.global_step, num_steps)


class NotFiniteError(FloatingPointError):
    """A step went wrong; `question_ids` are those whose loss may be to blame."""

    def __init__(self, message: str, question_ids: Sequence[int]) -> None:
        super().__init__(message)
        self.question_ids = question_ids


class Observer(Protocol):
    """Who is shown what happens: a progress bar, TensorBoard."""

    def start_epoch(self, progress: Progress, steps_per_epoch: int) -> None: ...

    def see_step(self, reading: Reading, rate: float) -> None: ...

    def end_epoch(self, metrics: dict[str, Any], global_step: int) -> None: ...


class Training:
    """One run, from its progress so far to the last epoch.

    `draw(epoch, first_step)` yields the micro-batches of every step; `validate()` gives metrics
    with a key "accuracy"; `describe()` gives what a checkpoint holds beside the training's state.
    """

    def __init__(
        self,
        stepper: Stepper,
        head: torch.nn.Module,
        plan: Plan,
        draw: Callable[[int, int], Iterator[Sequence[Questions]]],
        validate: Callable[[], dict[str, Any]],
        describe: Callable[[], dict[str, Any]],
        folder: RunFolder | None,
        observer: Observer,
    ) -> None:
        self.stepper, self.head, self.plan = stepper, head, plan
        self.draw, self.validate, self.describe = draw, validate, describe
        self.folder, self.observer = folder, observer  # the folder is the first process's alone
        self.progress = Progress()
        self.lines: list[dict[str, Any]] = []
        self._last_saved = self._epoch_start = time.monotonic()
        self._counted_before = 0  # questions of the epoch that an interrupted run trained on

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a checkpoint's state; metrics of later epochs are forgotten."""
        self.progress = Progress(**state["progress"])
        self.stepper.optimizer.load_state_dict(state["optimizer"])
        if state["scaler"]:  # empty where no float16 was in use
            self.stepper.scaler.load_state_dict(state["scaler"])
        self.lines = state["lines"]
        if self.folder is not None:
            self.folder.keep_metrics(self.lines)

    def run(self) -> list[dict[str, Any]]:
        """Train to the end; the metrics of all epochs."""
        with StopRequest() as stop:
            while self.progress.epoch <= self.plan.num_epochs:
                self._train_epoch(stop)
                self._finish_epoch()
        return self.lines

    def _train_epoch(self, stop: StopRequest) -> None:
        """The steps that are left of the epoch; each one's report is read during the next."""
        epoch = self.progress.epoch
        self._set_head(epoch)
        self._epoch_start, self._counted_before = time.monotonic(), self.progress.num_questions
        self.stepper.model.train()
        self.observer.start_epoch(self.progress, self.plan.steps_per_epoch)
        pending: tuple[Report, float] | None = None
        for batches in self.draw(epoch, self.progress.step):
            rate = self.plan.rate(self.progress)
            step = self.progress.global_step
            torch.manual_seed(mixed_seed("dropout", self.plan.seed, step, self.stepper.world.rank))
            report = self.stepper.step(batches, step, rate, stop.is_made)
            asked = pending is not None and self._read(*pending)
            self.progress = replace(
                self.progress, step=self.progress.step + 1, global_step=step + 1
            )
            pending = report, rate
            if asked:
                self._read(*pending)
                self._stop()
            if self._is_due():
                self._save_ahead(report)
        if pending is not None and self._read(*pending):
            self._stop()

    def _stop(self) -> NoReturn:
        """Leave a checkpoint; all wait for it: torchrun ends the others when one process ends."""
        self._save(self.progress)
        self.stepper.world.wait()
        raise StoppedOnRequestError

    def _save_ahead(self, report: Report) -> None:
        """Write a checkpoint of a step that only the first process, which writes, reads already.

        If it was bad or a process was asked to stop, all act on that together, a step later.
        """
        reading = report.read()
        if not reading.is_bad:
            self._save(self._count(reading))

    def _read(self, report: Report, rate: float) -> bool:
        """Count a step in; whether any process was asked to stop."""
        reading = report.read()
        if reading.is_bad:
            suspects = sorted(
                {n for part in self.stepper.world.gather(reading.suspects) for n in part}
            )
            named = ", ".join(map(str, suspects[:20])) or "no question's loss, only gradients"
            raise NotFiniteError(
                f"loss or gradient of step {reading.step} is not finite (questions: {named}); its "
                f"update was left out and the last checkpoint is from before it",
                suspects,
            )
        self.progress = self._count(reading)
        self.observer.see_step(reading, rate)
        return reading.is_stop

    def _count(self, reading: Reading) -> Progress:
        return replace(
            self.progress,
            loss_sum=self.progress.loss_sum + reading.loss,
            num_questions=self.progress.num_questions + reading.num_questions,
        )

    def _finish_epoch(self) -> None:
        """Validate, write the epoch's line and a checkpoint, and turn to the next epoch."""
        progress, start = self.progress, time.monotonic()
        speed = (progress.num_questions - self._counted_before) / (start - self._epoch_start)
        last = replace(progress, global_step=progress.global_step - 1)
        metrics: dict[str, Any] = {
            "epoch": progress.epoch,
            "step": progress.global_step,
            "loss": progress.loss_sum / max(1, progress.num_questions),
            "learning_rate": self.plan.rate(last),
            **self.plan.head_values(progress.epoch),
            **self.validate(),
        }
        metrics["questions_per_second"] = round(speed, 1)
        metrics["validation_seconds"] = round(time.monotonic() - start, 3)
        is_best = metrics["accuracy"] > progress.best
        self.lines.append(metrics)
        self.progress = Progress(
            epoch=progress.epoch + 1,
            global_step=progress.global_step,
            best=max(progress.best, metrics["accuracy"]),
        )
        self.observer.end_epoch(metrics, progress.global_step)
        if self.folder is not None:
            self.folder.keep_metrics(self.lines)
        self._save(self.progress, is_best)

    def _set_head(self, epoch: int) -> None:
        for name, value in self.plan.head_values(epoch).items():
            setattr(self.head, name, value)

    def _is_due(self) -> bool:
        elapsed = time.monotonic() - self._last_saved
        return self.folder is not None and elapsed > 60 * self.plan.checkpoint_every_minutes

    def _save(self, progress: Progress, is_best: bool = False) -> None:
        """Write a checkpoint, if this is the process that does."""
        self._last_saved = time.monotonic()
        if self.folder is None:
            return
        content = {
            "progress": asdict(progress),
            "optimizer": self.stepper.optimizer.state_dict(),
            "scaler": self.stepper.scaler.state_dict(),
            "lines": self.lines,
            **self.describe(),
        }
        self.folder.save(progress.global_step, content, self.plan.keep, is_best)
