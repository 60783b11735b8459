"""A trace of a few training steps, which https://ui.perfetto.dev opens."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, schedule

from data.io.atomic_files import atomic_write
from mcan.training.step import StepResult

WARM_UP = 3  # steps before the first that is recorded: caches fill, kernels are compiled


class StepProfiler:
    """Records `num_steps` steps of the first epoch that has enough of them left, once."""

    def __init__(self, num_steps: int, folder: Path, steps_per_epoch: int, num_epochs: int) -> None:
        self.num_steps, self.folder, self.num_epochs = num_steps, folder, num_epochs
        self.steps_per_epoch, self.is_done = steps_per_epoch, False
        self.profile: profile | None = None
        self.last_step = 0

    def start_epoch(self, epoch: int, first_step: int) -> None:
        if self.is_done:
            return
        if self.steps_per_epoch - first_step > WARM_UP + self.num_steps:
            self.profile = start_profile(self.num_steps, self.write)
        elif epoch == self.num_epochs:
            print("no trace is written: too few steps are left of the last epoch", flush=True)

    def on_step(self, result: StepResult, rate: float) -> None:
        if self.profile is not None:
            self.last_step = result.step
            self.profile.step()
            if self.is_done:
                self.profile.stop()
                self.profile = None

    def end_epoch(self, metrics: Mapping[str, Any]) -> None: ...

    def write(self, finished: profile) -> None:
        """Write the trace; what prevents it is said in one line, and the run continues."""
        self.is_done = True
        steps = f"{self.last_step - self.num_steps + 2}-{self.last_step + 1}"
        path = self.folder / f"profile_steps_{steps}.json.gz"
        try:
            with atomic_write(path) as temporary:
                # the name decides whether torch compresses
                packed = temporary.with_name(f"{temporary.name}.gz")
                try:
                    finished.export_chrome_trace(str(packed))
                    packed.rename(temporary)
                finally:
                    packed.unlink(missing_ok=True)
        except (OSError, RuntimeError) as error:
            print(f"WARNING: no trace: {' '.join(str(error).split())}", flush=True)
        else:
            print(f"a trace of steps {steps} is in {path}: open it in ui.perfetto.dev", flush=True)


def check_profile(num_steps: int, steps_per_epoch: int) -> None:
    """Raise where an epoch has too few steps; none means that nothing is to be recorded.

    A result is read one step late, so that an epoch's last step cannot be recorded.
    """
    longest = max(0, steps_per_epoch - WARM_UP - 1)
    if num_steps > longest:
        raise ValueError(
            f"runtime.profile={num_steps} is more than can be recorded of an epoch of "
            f"{steps_per_epoch} steps: at most {longest}"
        )


def start_profile(num_steps: int, write: Any) -> profile:
    """Begin to count steps; `write` gets the profile after the last that is recorded."""
    activities = [ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(ProfilerActivity.CUDA)
    started = profile(
        activities=activities,
        schedule=schedule(wait=WARM_UP - 1, warmup=1, active=num_steps, repeat=1),
        on_trace_ready=write,
    )
    started.start()
    return started
