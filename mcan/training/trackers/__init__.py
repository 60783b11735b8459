"""What follows a run: a progress bar, TensorBoard, attention samples, user-defined trackers."""

from collections.abc import Sequence

from mcan.training.settings import TrainingRuntime
from mcan.training.trackers.attention_samples import AttentionSamples
from mcan.training.trackers.profiler import StepProfiler
from mcan.training.trackers.progress_bar import ProgressBar
from mcan.training.trackers.tensorboard import Curves, EventFile
from mcan.training.trackers.tracker import (
    TRACKERS,
    TrackedRun,
    Tracker,
    Trackers,
    register_tracker,
)
from mcan.training.trackers.wandb_run import WandbRun

__all__ = ["TrackedRun", "Tracker", "Trackers", "WandbRun", "build_trackers", "register_tracker"]


@register_tracker("tensorboard")
def build_tensorboard(run: TrackedRun) -> Trackers:
    """Curves and attention samples in one file."""
    events = EventFile(run.folder / "tensorboard", run.first_step)
    return Trackers([Curves(events, run), AttentionSamples(events, run)])


def build_trackers(names: Sequence[str], run: TrackedRun, runtime: TrainingRuntime) -> Trackers:
    """The progress bar and the profiler, if they are asked for, and the trackers of these names."""
    trackers: list[Tracker] = []
    if runtime.show_progress:
        trackers.append(ProgressBar(run.num_epochs, run.steps_per_epoch))
    if runtime.profile:
        trackers.append(
            StepProfiler(runtime.profile, run.folder, run.steps_per_epoch, run.num_epochs)
        )
    return Trackers([*trackers, *(TRACKERS[name](run) for name in names)])


def check_trackers(names: Sequence[str]) -> None:
    """Raise for a name under which no tracker is registered, or one that could not start."""
    for name in names:
        getattr(TRACKERS[name], "check", lambda: None)()
