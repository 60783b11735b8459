"""What follows a run: the protocol of a tracker, trackers by name, and several as one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from data.registry import Registry
from mcan.evaluation.evaluation_split import EvaluationSplit
from mcan.network.model import MCAN
from mcan.training.step import StepResult

STEPS_PER_POINT = 20  # of curves over steps


@dataclass(frozen=True)
class TrackedRun:
    """What a tracker may need of the run that it follows; it is made before the run begins."""

    folder: Path  # runs/<name>, for what the tracker writes
    config: Mapping[str, Any]  # all settings
    first_step: int  # global; above 0 when a run is resumed
    steps_per_epoch: int
    num_epochs: int
    model: MCAN
    validation: EvaluationSplit
    dtype: torch.dtype  # of autocast
    device: torch.device


class Tracker(Protocol):
    """Follows a run: it is called as the run goes on, on the first process alone."""

    def start_epoch(self, epoch: int, first_step: int) -> None:
        """An epoch (from 1) begins at this step within it: 0 unless a run is resumed."""
        ...

    def on_step(self, result: StepResult, rate: float) -> None:
        """A step was made with this learning rate."""
        ...

    def end_epoch(self, metrics: Mapping[str, Any]) -> None:
        """An epoch was trained, validated and saved; metrics are its line of metrics.jsonl."""
        ...


# A builder may have a `check`, which is called before data is read: raise a ValueError of one
# sentence where the tracker could not start.
TRACKERS: Registry[Callable[[TrackedRun], Tracker]] = Registry("tracker")
register_tracker = TRACKERS.register


def step_values(result: StepResult, rate: float) -> dict[str, float]:
    """What curves over steps show."""
    return {
        "train/loss": result.mean_loss,
        "train/learning_rate": rate,
        "train/gradient_norm": result.gradient_norm,
    }


def epoch_values(metrics: Mapping[str, Any]) -> dict[str, float]:
    """The metrics of an epoch that are numbers."""
    return {
        f"epoch/{name}": value for name, value in metrics.items() if isinstance(value, (int, float))
    }


class Trackers:
    """Several trackers as one; without any, nothing follows the run."""

    def __init__(self, trackers: Sequence[Tracker] = ()) -> None:
        self.trackers = trackers

    def start_epoch(self, epoch: int, first_step: int) -> None:
        for tracker in self.trackers:
            tracker.start_epoch(epoch, first_step)

    def on_step(self, result: StepResult, rate: float) -> None:
        for tracker in self.trackers:
            tracker.on_step(result, rate)

    def end_epoch(self, metrics: Mapping[str, Any]) -> None:
        for tracker in self.trackers:
            tracker.end_epoch(metrics)
