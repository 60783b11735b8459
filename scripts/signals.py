"""Requests to stop that belong to the processes that this one has started."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType

from mcan.stopping import ASKED


@contextlib.contextmanager
def passing_on(pass_on: Callable[[int], None], asked: list[int]) -> Iterator[None]:
    """Note each such request in `asked` and call `pass_on(signal)`; what is ignored stays so."""

    def heed(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        pass_on(number)

    heeded = [number for number in ASKED if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, heed) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
