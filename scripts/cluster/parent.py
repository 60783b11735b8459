"""A command that another one started and waits for stops when that one is gone, even by kill -9."""

import ctypes
import os
import signal
from collections.abc import Mapping

VARIABLE = "STARTED_BY"  # the id of the process that waits for this one
SET_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux's prctl


def name_parent(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of a command that is to stop when this process is gone.

    Start it from the main thread: the system takes the end of the thread for that of the process.
    """
    return {**environment, VARIABLE: str(os.getpid())}


def stop_with_parent() -> None:
    """Have SIGTERM sent to this process when the one that named itself its parent is gone.

    One that a shell, make or srun started has no such parent, and outlives them.
    """
    parent = os.environ.pop(VARIABLE, None)  # not that of what this process starts
    if parent is None:
        return
    ctypes.CDLL(None).prctl(SET_SIGNAL, signal.SIGTERM)
    if os.getppid() != int(parent):  # it was gone before
        os.kill(os.getpid(), signal.SIGTERM)
