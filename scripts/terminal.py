"""A terminal that is closed, or a pipe whose reader ends: a run of days does not end with it."""

import errno
import io
import os
import sys
from typing import Any

GONE = (errno.EIO, errno.EPIPE)


class Outlet(io.FileIO):
    """Writes to nowhere once there is nobody to read any more."""

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


def outlive_terminal() -> None:
    """Have all that is printed from now on lost rather than end the run, if nobody is there."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        try:
            outlet = Outlet(stream.fileno(), "w", closefd=False)
        except (AttributeError, io.UnsupportedOperation):  # no file at all, as in a notebook
            continue
        stream.flush()
        text = io.TextIOWrapper(
            io.BufferedWriter(outlet),
            encoding=stream.encoding,
            errors=stream.errors,
            line_buffering=stream.line_buffering,
        )
        setattr(sys, name, text)
