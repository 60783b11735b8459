"""What follows a run: a progress bar, TensorBoard, attention samples, user-defined trackers."""

from collections.abc import Sequence

from mcan.training.trackers.attention_samples import AttentionSamples
from mcan.training.trackers.progress_bar import ProgressBar
from mcan.training.trackers.tensorboard import Curves, EventFile
from mcan.training.trackers.tracker import (
    TRACKERS,
    TrackedRun,
    Tracker,
    Trackers,
    register_tracker,
)

__all__ = ["TrackedRun", "Tracker", "Trackers", "build_trackers", "register_tracker"]


@register_tracker("tensorboard")
def build_tensorboard(run: TrackedRun) -> Trackers:
    """Curves and attention samples in one file."""
    events = EventFile(run.folder / "tensorboard", run.first_step)
    return Trackers([Curves(events, run), AttentionSamples(events, run)])


def build_trackers(names: Sequence[str], run: TrackedRun, show_progress: bool) -> Trackers:
    """The progress bar, if it is to be shown, and the trackers of these names."""
    bar = [ProgressBar(run.num_epochs, run.steps_per_epoch)] if show_progress else []
    return Trackers([*bar, *(TRACKERS[name](run) for name in names)])


def check_trackers(names: Sequence[str]) -> None:
    """Raise for a name under which no tracker is registered."""
    for name in names:
        TRACKERS[name]
