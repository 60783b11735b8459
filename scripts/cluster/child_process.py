"""A command of this project as a child process: signals are passed on to it, its output logged."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType

from mcan.runtime.stop_request import PREEMPTED, STOP_SIGNALS
from scripts.cli.command import INTERRUPTED
from scripts.cluster.parent import name_parent


@contextlib.contextmanager
def forward_signals(forward: Callable[[int], None]) -> Iterator[list[int]]:
    """Call `forward(signal)` on every request to stop; a list of those received so far.

    A signal that this process ignores stays ignored.
    """
    received: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        received.append(number)
        forward(number)

    handled = [number for number in STOP_SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, handle) for number in handled}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_child(arguments: Sequence[str], log: Path) -> tuple[int, list[int]]:
    """Run `python <arguments>` to its end; its exit code and the requests to stop on the way.

    The code is 75 if such a request ended it, and its own if it failed, after a request too. The
    child is in a session of its own, so that Ctrl-C reaches it once, and it saves, and not twice,
    which would end it at once.
    """

    def forward(number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(number)

    child = subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=name_parent(),
        start_new_session=True,
    )
    with forward_signals(forward) as received:
        copy_output(child, log)
        code = child.wait()
    is_ended = code == INTERRUPTED or -code in received
    return PREEMPTED if received and is_ended else code, received


def copy_output(child: subprocess.Popen[bytes], log: Path) -> None:
    """Copy what the child prints into the log, and onto this process's own output."""
    assert child.stdout is not None
    with open(log, "ab") as file:
        while printed := os.read(child.stdout.fileno(), 1 << 16):
            file.write(printed)
            file.flush()
            sys.stdout.buffer.write(printed)
            sys.stdout.flush()


def find_last_message(log: Path, start: int = 0) -> str:
    """The sentence that a command ended with, after byte `start`: its last error or last line."""
    if not log.is_file():
        return ""
    text = log.read_bytes()[start:].decode(errors="replace").replace("\r", "\n")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("error: ")]
    return (errors or lines or [""])[-1]
