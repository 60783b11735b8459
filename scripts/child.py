"""A command of this project as a process of its own: its words go to a log and are shown."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from mcan.stopping import ASKED, PREEMPTED


def run_child(arguments: Sequence[str], log: Path) -> int:
    """Run `python <arguments>` to its end; its exit code, 75 if a request to stop ended it.

    Such a request is passed on. The child is in a session of its own, so that Ctrl-C reaches it
    once, and it saves, and not twice, which ends it at once.
    """
    asked = False

    def pass_on(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(number)

    child = subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    heeded = [number for number in ASKED if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, pass_on) for number in heeded}
    try:
        show(child, log)
        code = child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return PREEMPTED if asked and code != 0 else code


def show(child: subprocess.Popen[bytes], log: Path) -> None:
    """Copy what the child prints into the log, and onto this process's own output."""
    assert child.stdout is not None
    with open(log, "ab") as file:
        while words := os.read(child.stdout.fileno(), 1 << 16):
            file.write(words)
            file.flush()
            sys.stdout.buffer.write(words)
            sys.stdout.flush()


def last_words(log: Path) -> str:
    """The sentence that a command ended with: its last error, or its last line."""
    if not log.is_file():
        return ""
    lines = log.read_text(encoding="utf-8", errors="replace").replace("\r", "\n").splitlines()
    told = [line.strip() for line in lines if line.strip()]
    errors = [line for line in told if line.startswith("error: ")]
    return (errors or told or [""])[-1]
