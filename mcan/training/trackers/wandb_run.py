"""Weights & Biases: a run's curves for its server, offline unless it is told otherwise.

wandb's own variables choose where they go: WANDB_MODE=online, WANDB_PROJECT, WANDB_ENTITY.
"""

import contextlib
import os
import secrets
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from data.io.atomic_files import atomic_write
from mcan.training.step import StepResult
from mcan.training.trackers.tracker import (
    STEPS_PER_POINT,
    TrackedRun,
    epoch_values,
    register_tracker,
    step_values,
)

PROJECT = "continuous-visual-attention"  # unless WANDB_PROJECT names another
FINISH_SECONDS = 300  # to wait for an upload at the end; what is left then, `wandb sync` sends
LOGIN_SECONDS = 60  # that a question for a password waits


@register_tracker("wandb")
class WandbRun:
    """TensorBoard's curves in wandb; says so once when wandb fails, and the run continues."""

    def __init__(self, run: TrackedRun) -> None:
        self.num_epochs = run.num_epochs
        self._run: Any = None
        with self._giving_up():
            self._run = start_run(run)

    @staticmethod
    def check() -> None:
        """Raise where the package is missing."""
        try:
            import_wandb()
        except ImportError as error:
            raise ValueError(
                "tracker=[wandb] needs the package wandb: .venv/bin/pip install -e '.[wandb]' "
                f"({error})"
            ) from None

    def start_epoch(self, epoch: int, first_step: int) -> None: ...

    def on_step(self, result: StepResult, rate: float) -> None:
        if result.step % STEPS_PER_POINT == 0:
            self._log(step_values(result, rate), result.step)

    def end_epoch(self, metrics: Mapping[str, Any]) -> None:
        self._log(epoch_values(metrics), metrics["step"] - 1)
        if metrics["epoch"] == self.num_epochs and self._run is not None:
            with self._giving_up():
                self._run.finish()

    def _log(self, values: Mapping[str, float], step: int) -> None:
        if self._run is not None:
            with self._giving_up():
                self._run.log(dict(values), step=step)

    @contextlib.contextmanager
    def _giving_up(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # wandb raises whatever its process or the network leads to
            self._run = None
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            print(
                f"WARNING: wandb failed ({reason}); the run continues without it",
                file=sys.stderr,
                flush=True,
            )
            with contextlib.suppress(Exception):  # else it fails once more when Python ends
                import_wandb().teardown()


def start_run(run: TrackedRun) -> Any:
    """A run of wandb, or the one that a resumed run had."""
    wandb = import_wandb()
    return wandb.init(
        project=os.environ.get("WANDB_PROJECT", PROJECT),
        id=keep_id(run.folder / "wandb_id.txt"),
        resume="allow",
        name=run.folder.name,
        config=dict(run.config),
        settings=wandb.Settings(
            mode=os.environ.get("WANDB_MODE", "offline"),
            root_dir=str(run.folder),
            console="off",  # what is printed is the terminal's
            silent=True,
            finish_timeout=FINISH_SECONDS,
            login_timeout=LOGIN_SECONDS,
        ),
    )


def keep_id(path: Path) -> str:
    """The id in a file, which gets a new one where it is not there."""
    if not path.is_file():
        with atomic_write(path) as temporary:
            temporary.write_text(secrets.token_hex(4), encoding="utf-8")
    return path.read_text(encoding="utf-8").strip()


def import_wandb() -> ModuleType:
    """The package, which sends reports of its own errors only to those who ask for it."""
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    import wandb

    return wandb
