"""Being asked to stop: SIGTERM, SIGUSR1 (a cluster's preemption), SIGINT, a closed terminal."""

import signal
from types import FrameType
from typing import Any

PREEMPTED = (
    75  # exit code: stopped on request with a checkpoint written; run again with resume=true
)
ASKED = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP)


class StopRequest:
    """Remembers the first such signal; a second SIGINT ends the process at once.

    A signal that the process was started to ignore (nohup) stays ignored.
    """

    def __init__(self) -> None:
        self.is_made = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "StopRequest":
        heeded = [number for number in ASKED if signal.getsignal(number) != signal.SIG_IGN]
        self._before = {number: signal.signal(number, self._remember) for number in heeded}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _remember(self, number: int, frame: FrameType | None) -> None:
        if self.is_made and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.is_made = True


class StoppedOnRequestError(Exception):
    """The run was asked to stop and has written its checkpoint."""
