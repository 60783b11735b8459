"""Imported by runs under test (modules=[tests.faults.trap]): injects a fault at a chosen moment.

TRAP (JSON) gives the place, how often it must be reached, the rank and the action; TRACE names
a file that always contains the current place, for tests that kill the run from outside.
"""

import functools
import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from mcan import checkpoint
from mcan.evaluation import evaluation_split
from mcan.training import run_folder
from mcan.training.loop import TrainingRun
from mcan.training.run_folder import RunFolder
from mcan.training.step import Stepper
from tests.faults.moments import (
    AFTER_METRICS,
    AT_EPOCH_END,
    BEFORE_RENAME,
    BETWEEN_NAMES,
    IN_STEP,
    IN_VALIDATION,
    IN_WRITING,
)

RANK = int(os.environ.get("RANK", "0"))
set_trap: dict[str, Any] = json.loads(os.environ.get("TRAP", "{}"))
trace = os.open(os.environ["TRACE"], os.O_WRONLY | os.O_CREAT) if RANK == 0 else None
passages: Counter[str] = Counter()
step = 0


def is_due(place: str) -> bool:
    """Count that the place was reached; whether the fault is due."""
    passages[place] += 1
    if trace is not None:
        os.pwrite(trace, f"{place}, step {step}".ljust(80).encode(), 0)
    wanted = set_trap.get("place"), set_trap.get("passage"), set_trap.get("rank", 0)
    return (place, passages[place], RANK) == wanted


def trigger(place: str) -> None:
    """Perform the action; the test finds the printed line."""
    print(f"TRAP {set_trap['action']}: {place}, step {step}", flush=True)
    ACTIONS[set_trap["action"]]()


def make_read_only() -> None:
    """Mount the run folder over itself, read-only; open files stay writable."""
    folder = set_trap["folder"]
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)


def pause() -> None:
    """Sleep, and write that into the trace."""
    assert trace is not None
    os.pwrite(trace, b"pause".ljust(80), 0)
    time.sleep(10)


ACTIONS: dict[str, Callable[[], None]] = {
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "freeze": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "pause": pause,
    "read-only": make_read_only,
}


def before(owner: Any, name: str, place: str) -> None:
    """Reach the place before every call of a function."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        if is_due(place):
            trigger(place)
        return original(*arguments, **options)

    setattr(owner, name, wrapped)


def after(owner: Any, name: str, place: str) -> None:
    """Reach the place after every call of a function."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        result = original(*arguments, **options)
        if is_due(place):
            trigger(place)
        return result

    setattr(owner, name, wrapped)


def follow_steps(original: Callable[..., Any]) -> Callable[..., Any]:
    """Record the current step."""

    @functools.wraps(original)
    def wrapped(self: Stepper, batches: Any, number: int, *more: Any) -> Any:
        global step
        step = number
        return original(self, batches, number, *more)

    return wrapped


def follow_restoring(original: Callable[..., Any]) -> Callable[..., Any]:
    """Record the step that a run resumes from."""

    @functools.wraps(original)
    def wrapped(self: TrainingRun, state: dict[str, Any]) -> Any:
        global step
        step = state["progress"]["global_step"]
        return original(self, state)

    return wrapped


def pass_batches(original: Callable[..., Any]) -> Callable[..., Any]:
    """Reach a place at every batch of the validation."""

    @functools.wraps(original)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        for batch in original(*arguments, **options):
            if is_due(IN_VALIDATION):
                trigger(IN_VALIDATION)
            yield batch

    return wrapped


def save_by_halves(original: Callable[..., Any]) -> Callable[..., Any]:
    """Trigger when half of a checkpoint's bytes are in its file."""

    def wrapped(content: Any, file: Any, **options: Any) -> None:
        due = str(getattr(file, "name", "")).endswith(".partial") and is_due(IN_WRITING)
        original(content, file, **options)
        if due:
            file.truncate(file.tell() // 2)
            file.flush()
            trigger(IN_WRITING)

    return wrapped


def pass_renaming(original: Callable[..., Any]) -> Callable[..., Any]:
    """Reach a place before a written checkpoint is renamed."""

    def wrapped(source: Any, target: Any, **options: Any) -> None:
        if Path(target).name == "last.pt" and is_due(BEFORE_RENAME):
            trigger(BEFORE_RENAME)
        original(source, target, **options)

    return wrapped


Stepper.step = follow_steps(Stepper.step)  # type: ignore[method-assign]
TrainingRun.restore = follow_restoring(TrainingRun.restore)  # type: ignore[method-assign]
before(Stepper, "_update", IN_STEP)
evaluation_split.iterate_split = pass_batches(evaluation_split.iterate_split)
torch.save = save_by_halves(torch.save)
checkpoint.os.replace = pass_renaming(os.replace)
before(run_folder, "link_checkpoint", BETWEEN_NAMES)
after(RunFolder, "keep_metrics", AFTER_METRICS)
after(TrainingRun, "finish_epoch", AT_EPOCH_END)
