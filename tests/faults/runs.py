"""Small training runs with an injected fault: start them, wait for them, compare their results."""

import json
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mcan.checkpoint import load_checkpoint
from mcan.runtime.stop_request import STOP_SIGNALS
from tests.faults import moments
from tests.small_runs import HANG, ROOT, assert_same, train_command

TRAPPED = "modules=[tests.faults.trap]"


def environment(run: str, **variables: str) -> dict[str, str]:
    """The environment of a command and all its descendants, which are identified by `run`."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "FAULTY_RUN": run, **variables}


def restore_signals() -> None:
    """Reset signal handlers, in case the tests themselves run under nohup or in the background."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_DFL)


class Run(subprocess.Popen[str]):
    """A command and all processes that it starts."""

    def __init__(self, command: Sequence[str], **variables: str) -> None:
        self.run = uuid.uuid4().hex
        super().__init__(
            command,
            cwd=ROOT,
            env=environment(self.run, **variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=restore_signals,
        )

    def end(self, seconds: float = HANG) -> tuple[int, str]:
        """The exit code and the output; no process that it started may be left."""
        try:
            printed, _ = self.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            for number in members(self.run):
                os.kill(number, signal.SIGKILL)
            raise
        assert_is_over(self.run)
        return self.returncode, printed


def launch_trapped(words: list[str], trace: Path, num_processes: int = 1, **trap: Any) -> Run:
    """Train with a fault (place=…, passage=…, action=…, rank=…), or only with a trace."""
    trace.unlink(missing_ok=True)
    command = train_command([*words, TRAPPED], num_processes)
    return Run(command, TRAP=json.dumps(trap), TRACE=str(trace))


def hold_in_step(words: list[str], trace: Path, passage: int, num_processes: int = 1) -> Run:
    """Train up to a step and wait there until the run is asked to stop or the trace is removed."""
    trap = {"place": moments.IN_STEP, "passage": passage, "action": "hold"}
    process = launch_trapped(words, trace, num_processes, **trap)
    wait_for(trace, "hold", process)
    return process


def members(run: str) -> dict[int, str]:
    """The running processes of a run, in any session, with their command lines."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"FAULTY_RUN={run}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")
        except (OSError, ProcessLookupError):  # it has ended, or belongs to another user
            continue
    return found


def assert_is_over(run: str) -> None:
    """No process that a run started stays alive after it."""
    deadline = time.monotonic() + HANG / 5
    while left := members(run):
        assert time.monotonic() < deadline, f"orphans: {left}"
        time.sleep(0.01)


def wait_for(trace: Path, place: str, process: subprocess.Popen[str]) -> None:
    """Wait until the run has reached a place."""
    deadline = time.monotonic() + HANG
    while place not in read_trace(trace):
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline, f"the run did not reach: {place}"
        time.sleep(0.002)


def read_trace(trace: Path) -> str:
    """The place that the run reached last."""
    return trace.read_text().strip() if trace.is_file() else ""


def errors_of(printed: str) -> list[str]:
    """The error messages in the output, which must not contain a traceback."""
    assert "Traceback" not in printed, printed
    return [line for line in printed.splitlines() if line.startswith("error: ")]


def assert_matches_reference(folder: Path, reference: Path) -> int:
    """The newest checkpoint equals the reference's checkpoint of that step; returns the step."""
    newest = max(folder.glob("step_*.pt"))
    content, expected = load_checkpoint(newest), load_checkpoint(reference / newest.name)
    for key in ("model", "optimizer"):
        assert_same(content[key], expected[key], f"{newest.name}/{key}")
    assert load_checkpoint(folder / "last.pt")["progress"]["global_step"] >= int(newest.stem[5:])
    return int(newest.stem[5:])
