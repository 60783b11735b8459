"""What a command prints: warnings in one line, and on when its terminal is closed.

A run of days does not end with its terminal, or with the reader of a pipe.
"""

import errno
import io
import os
import sys
import warnings
from typing import Any

from tqdm import tqdm

GONE = (errno.EIO, errno.EPIPE)
WITH_CODE = warnings.formatwarning


class LossyOutput(io.FileIO):
    """A stream that discards what is written once its reader has gone."""

    def write(self, content: Any) -> int:
        try:
            return super().write(content)
        except OSError as error:
            if error.errno not in GONE:
                raise
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)
        return memoryview(content).nbytes


def ignore_closed_terminal() -> None:
    """Discard what is printed after the terminal is closed, so that the run does not end."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        try:
            output = LossyOutput(stream.fileno(), "w", closefd=False)
        except (AttributeError, io.UnsupportedOperation):  # no file at all, as in a notebook
            continue
        stream.flush()
        text = io.TextIOWrapper(
            io.BufferedWriter(output),
            encoding=stream.encoding,
            errors=stream.errors,
            line_buffering=stream.line_buffering,
        )
        setattr(sys, name, text)


def shorten_warnings() -> None:
    """Print a warning to the user as one line, without the line of code that it came from."""
    warnings.formatwarning = format_warning


def format_warning(
    message: Warning | str, category: type[Warning], *place: Any, **more: Any
) -> str:
    """A line for users; what programmers are warned of stays as Python formats it."""
    if category is not UserWarning:
        return WITH_CODE(message, category, *place, **more)
    below = "\n" if getattr(tqdm, "_instances", ()) else ""  # a progress bar ends in no newline
    return f"{below}warning: {message}\n"
