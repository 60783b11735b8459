"""A terminal that is closed, or a pipe whose reader ends: a run of days does not end with it."""

import errno
import io
import os
import sys
from typing import Any

GONE = (errno.EIO, errno.EPIPE)


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
