"""The training loop: epochs of steps, validation, checkpoints; resumable at any step."""

import contextlib
import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NoReturn

from attention.seeding import mixed_seed
from mcan.evaluation.evaluation_split import EvaluationSplit
from mcan.evaluation.evaluator import evaluate_split
from mcan.evaluation.metric_names import rename_old_metrics
from mcan.head_schedule import ScheduledHead
from mcan.network.model import MCAN
from mcan.runtime.memory import explain_shortage
from mcan.runtime.stop_request import StoppedOnRequestError, StopRequest
from mcan.runtime.torch_settings import seed_generators
from mcan.training.learning_rate import build_rate
from mcan.training.run_folder import RunFolder
from mcan.training.settings import TrainingSettings
from mcan.training.step import PendingResult, Stepper, StepResult
from mcan.training.trackers import Trackers
from mcan.training.training_data import TrainingData


@dataclass(frozen=True)
class Progress:
    """Where a run is. All that is random is drawn from (seed, global_step): no more state."""

    epoch: int = 1  # the one being trained
    step: int = 0  # steps done in it
    global_step: int = 0
    loss_sum: float = 0.0  # over the questions of this epoch so far
    num_questions: int = 0
    best: float = -1.0  # highest validation accuracy so far


@dataclass
class TrainingRun:
    """One run, from its progress so far to the last epoch."""

    settings: TrainingSettings
    model: MCAN
    head: ScheduledHead
    stepper: Stepper
    data: TrainingData
    validation: EvaluationSplit
    contents: Mapping[str, Any]  # of a checkpoint, beside weights and state
    folder: RunFolder | None  # of the first process alone

    def __post_init__(self) -> None:
        self.trackers = Trackers()
        self.learning_rate = build_rate(self.settings.optim.rate)
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
        self.lines = [rename_old_metrics(line) for line in state["lines"]]
        if self.folder is not None:
            self.folder.keep_metrics(self.lines)

    def train(self) -> list[dict[str, Any]]:
        """Train to the end; the metrics of all epochs."""
        with StopRequest() as stop:
            while self.progress.epoch <= self.settings.optim.epochs:
                with self._explain_shortage():
                    self.train_epoch(stop)
                self.finish_epoch(stop)
        return self.lines

    def train_epoch(self, stop: StopRequest) -> None:
        """The steps that are left of the epoch; each one's result is read during the next."""
        epoch = self.progress.epoch
        self.head.apply(self.model.pool_image.head, epoch)
        self._epoch_start, self._counted_before = time.monotonic(), self.progress.num_questions
        self.stepper.model.train()
        self.trackers.start_epoch(epoch, self.progress.step)
        pending: tuple[PendingResult, float] | None = None
        for batches in self.data.batches(epoch, self.progress.step):
            rate = self.rate(self.progress)
            step = self.progress.global_step
            seed = mixed_seed("dropout", self.settings.seed, step, self.stepper.world.rank)
            seed_generators(self.stepper.world.device, seed)
            result = self.stepper.step(batches, step, rate, stop.is_made)
            stop_requested = pending is not None and self._read(*pending)
            self.progress = replace(
                self.progress, step=self.progress.step + 1, global_step=step + 1
            )
            pending = result, rate
            if stop_requested:
                self._read(*pending)
                self._stop()
            if self._is_checkpoint_due():
                self._save_early(result)
        if pending is not None and self._read(*pending):
            self._stop()

    def finish_epoch(self, stop: StopRequest) -> None:
        """Validate, write the epoch's metrics and a checkpoint, and turn to the next epoch."""
        progress, start = self.progress, time.monotonic()
        trained = progress.num_questions - self._counted_before
        last = replace(progress, global_step=progress.global_step - 1)
        metrics: dict[str, Any] = {
            "epoch": progress.epoch,
            "step": progress.global_step,
            "loss": progress.loss_sum / max(1, progress.num_questions),
            "learning_rate": self.rate(last),
            **self.head.values_at(progress.epoch),
            **self.validate(stop),
        }
        metrics["validation_questions"] = len(self.validation.question_ids)
        if self.settings.runtime.limit_batches is not None:
            metrics["limit_batches"] = self.settings.runtime.limit_batches
        if trained:  # a run that was stopped in its validation resumes with nothing to time
            metrics["questions_per_second"] = round(trained / (start - self._epoch_start), 1)
        metrics["validation_seconds"] = round(time.monotonic() - start, 3)
        is_best = metrics["accuracy"] > progress.best
        self.lines.append(metrics)
        self.progress = Progress(
            epoch=progress.epoch + 1,
            global_step=progress.global_step,
            best=max(progress.best, metrics["accuracy"]),
        )
        if self.folder is not None:
            self.folder.keep_metrics(self.lines)
        self._save(self.progress, is_best)
        self.trackers.end_epoch(metrics)  # last: one that fails does not take the epoch with it

    def validate(self, stop: StopRequest) -> dict[str, Any]:
        """The metrics of the validation split; a run that is stopped meanwhile begins it again."""
        stepper = self.stepper
        try:
            return evaluate_split(
                self.model, self.validation, stepper.world, stepper.dtype, stop
            ).metrics
        except StoppedOnRequestError:
            self._stop()

    def rate(self, progress: Progress) -> float:
        """The learning rate of the step that comes."""
        num_steps = self.settings.optim.epochs * self.data.sampler.num_steps
        return self.learning_rate.at(progress.epoch, progress.global_step, num_steps)

    def _read(self, pending: PendingResult, rate: float) -> bool:
        """Count a step in; whether any process was asked to stop."""
        result = pending.read()
        if result.is_nonfinite:
            self._raise_nonfinite(result)
        self.progress = self._count(result)
        self.trackers.on_step(result, rate)
        return result.is_stop_requested

    def _raise_nonfinite(self, result: StepResult) -> NoReturn:
        """End the run with the questions whose loss is not finite, and a bad feature if any."""
        gathered = self.stepper.world.gather(result.nonfinite_questions)
        questions = sorted({number for part in gathered for number in part})
        named = ", ".join(map(str, questions[:20])) or "no question's loss, only gradients"
        message = (
            f"loss or gradient of step {result.step} is not finite (questions: {named}); its "
            f"update was left out and the last checkpoint is from before it"
        )
        bad = self.data.find_bad_features(questions) if questions else None
        if bad is not None:
            message = f"{bad} is NaN or infinite; copy or make the store again. {message}"
        raise FloatingPointError(message)

    def _count(self, result: StepResult) -> Progress:
        return replace(
            self.progress,
            loss_sum=self.progress.loss_sum + result.loss,
            num_questions=self.progress.num_questions + result.num_questions,
        )

    def _stop(self) -> NoReturn:
        """Leave a checkpoint; all wait for it: torchrun ends the others when one process ends."""
        self._save(self.progress)
        self.stepper.world.barrier()
        raise StoppedOnRequestError

    def _explain_shortage(self) -> contextlib.AbstractContextManager[None]:
        slices = self.stepper.world.size * self.data.num_micro_batches
        return explain_shortage(
            math.ceil(self.settings.optim.batch_size / slices),
            f"runtime.micro_batches={2 * self.data.num_micro_batches}",
        )

    def _is_checkpoint_due(self) -> bool:
        elapsed = time.monotonic() - self._last_saved
        return (
            self.folder is not None
            and elapsed > 60 * self.settings.runtime.checkpoint_every_minutes
        )

    def _save_early(self, pending: PendingResult) -> None:
        """Write a checkpoint of a step that only the first process, which writes, reads already.

        If it was not finite or a process was asked to stop, all act on that together, a step later.
        """
        result = pending.read()
        if not result.is_nonfinite:
            self._save(self._count(result))

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
            **self.contents,
            "model": self.model.state_dict(),
        }
        self.folder.save(progress.global_step, content, self.settings.runtime.keep, is_best)
