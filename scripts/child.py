"""A command of this project as a process of its own: its words go to a log and are shown."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from mcan.stopping import PREEMPTED
from scripts.signals import passing_on


def run_child(arguments: Sequence[str], log: Path) -> int:
    """Run `python <arguments>` to its end; its exit code, 75 if a request to stop ended it.

    Such a request is passed on. The child is in a session of its own, so that Ctrl-C reaches it
    once, and it saves, and not twice, which ends it at once.
    """
    asked = False

    def pass_on(number: int) -> None:
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
    with passing_on(pass_on):
        show(child, log)
        code = child.wait()
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


def last_words(log: Path, begin: int = 0) -> str:
    """The sentence that a command ended with, after so many bytes: its last error or last line."""
    if not log.is_file():
        return ""
    text = log.read_bytes()[begin:].decode(errors="replace").replace("\r", "\n")
    told = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in told if line.startswith("error: ")]
    return (errors or told or [""])[-1]
