"""Imported by runs under test (modules=[tests.faults.trap]): injects a fault at a chosen moment.

TRAP (JSON) gives the place, how often it must be reached, the rank and the action; TRACE names
a file that always contains the current place, for tests that act on the run from outside.
"""

import functools
import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

from mcan.evaluation import evaluation_split
from mcan.network.model import MCAN
from mcan.runtime.stop_request import StopRequest
from mcan.training import run_folder
from mcan.training.loop import TrainingRun
from mcan.training.run_folder import RunFolder
from mcan.training.step import Stepper
from tests.faults import moments

RANK = int(os.environ.get("RANK", "0"))
LONG = 3600  # seconds; the test ends the run before
set_trap: dict[str, Any] = json.loads(os.environ.get("TRAP", "{}"))
trace = os.open(os.environ["TRACE"], os.O_WRONLY | os.O_CREAT) if RANK == 0 else None
passages: Counter[str] = Counter()
step = 0
is_asked = False


def write_trace(text: str) -> None:
    if trace is not None:
        os.pwrite(trace, text.ljust(80).encode(), 0)


def is_due(place: str) -> bool:
    """Count that the place was reached; whether the fault is due."""
    passages[place] += 1
    write_trace(f"{place}, step {step}")
    wanted = set_trap.get("place"), set_trap.get("passage"), set_trap.get("rank", 0)
    return (place, passages[place], RANK) == wanted


def trigger(place: str) -> None:
    """Perform the action; the test finds the printed line."""
    print(f"TRAP {set_trap['action']}: {place}, step {step}", flush=True)
    ACTIONS[set_trap["action"]]()


def reach(place: str, *_: object, **__: object) -> None:
    """Reach a place, whatever the arguments of the function that is called there."""
    if is_due(place):
        trigger(place)


def make_read_only() -> None:
    """Mount the run folder over itself, read-only; open files stay writable."""
    folder = set_trap["folder"]
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)


def hold() -> None:
    """Wait until the run is asked to stop or the test removes the trace."""
    write_trace("hold")
    while not is_asked and os.path.exists(os.environ["TRACE"]):
        time.sleep(0.01)


def pause() -> None:
    """A step that takes very long, and goes on when the run is asked to stop."""
    write_trace("pause")
    time.sleep(LONG)


def run_out_of_memory() -> None:
    """Fail as torch does; there is no GPU to fill."""
    raise torch.OutOfMemoryError(
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77 GiB "
        "of which 1.21 GiB is free.\nSee documentation for Memory Management"
    )


ACTIONS: dict[str, Callable[[], None]] = {
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "freeze": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "hold": hold,
    "pause": pause,
    "read-only": make_read_only,
    "out of memory": run_out_of_memory,
}


def follow_request(*_: object) -> None:
    """Record that the run was asked to stop."""
    global is_asked
    is_asked = True
    write_trace("asked to stop")


def follow_steps(stepper: Stepper, batches: object, number: int, *_: object) -> None:
    """Record the current step."""
    global step
    step = number


def follow_restoring(run: TrainingRun, state: dict[str, Any]) -> None:
    """Record the step that a run resumes from."""
    global step
    step = state["progress"]["global_step"]
    reach(moments.RESUMING)


def follow_batches(batches: Iterable[Any]) -> Iterator[Any]:
    """Reach a place at every batch of the validation."""
    for batch in batches:
        reach(moments.IN_VALIDATION)
        yield batch


def before_attending(model: MCAN, *_: object, **__: object) -> None:
    if not model.training:
        reach(moments.IN_ANSWERING)


def cut_in_half(content: object, file: Any, **_: object) -> None:
    """Trigger when half of a checkpoint's bytes are in its file."""
    if str(getattr(file, "name", "")).endswith(".partial") and is_due(moments.IN_WRITING):
        file.truncate(file.tell() // 2)
        file.flush()
        trigger(moments.IN_WRITING)


def before_renaming(source: object, target: Path, **_: object) -> None:
    if Path(target).name == "last.pt":
        reach(moments.BEFORE_RENAME)


def nothing(*_: object, **__: object) -> None:
    pass


def around(
    owner: Any,
    name: str,
    before: Callable[..., None] = nothing,
    after: Callable[..., None] = nothing,
) -> None:
    """Do something before and after every call of a function, with the same arguments."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        before(*arguments, **options)
        result = original(*arguments, **options)
        after(*arguments, **options)
        return result

    setattr(owner, name, wrapped)


iterate_split = evaluation_split.iterate_split
evaluation_split.iterate_split = lambda *a, **o: follow_batches(iterate_split(*a, **o))
around(StopRequest, "_remember", after=follow_request)
around(Stepper, "step", before=follow_steps)
around(TrainingRun, "restore", before=follow_restoring)
around(Stepper, "_update", before=partial(reach, moments.IN_STEP))
around(MCAN, "attend", before=before_attending)
around(torch, "save", after=cut_in_half)
around(os, "replace", before=before_renaming)
around(run_folder, "link_checkpoint", before=partial(reach, moments.BETWEEN_NAMES))
around(RunFolder, "keep_metrics", after=partial(reach, moments.AFTER_METRICS))
around(TrainingRun, "finish_epoch", after=partial(reach, moments.AT_EPOCH_END))
