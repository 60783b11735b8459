"""Requests to stop that belong to the processes that this one has started."""

import contextlib
import signal
from collections.abc import Callable, Iterator

from mcan.stopping import ASKED


@contextlib.contextmanager
def passing_on(pass_on: Callable[[int], None]) -> Iterator[None]:
    """Call `pass_on(signal)` for each such request; a signal that is ignored stays ignored."""
    heeded = [number for number in ASKED if signal.getsignal(number) != signal.SIG_IGN]
    before = {
        number: signal.signal(number, lambda number, frame: pass_on(number)) for number in heeded
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
