"""Being asked to stop: SIGTERM, SIGUSR1 (a cluster's preemption), SIGINT, a closed terminal."""

import itertools
import signal
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from mcan.runtime.distributed import World

# exit code: stopped on request with a checkpoint written; run again with resume=true
PREEMPTED = 75
ASK_EVERY = 16  # batches of a validation: a few seconds, and the device waits this rarely
Item = TypeVar("Item")
STOP_SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP)


class StopRequest:
    """Remembers the first request to stop; a second SIGINT ends the process at once.

    A signal that the process was started to ignore (nohup) stays ignored.
    """

    def __init__(self) -> None:
        self.is_made = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "StopRequest":
        heeded = [number for number in STOP_SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
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
    """The run was asked to stop; when it leaves the training loop, a checkpoint is written."""


def until_stopped(items: Iterable[Item], stop: StopRequest, world: "World") -> Iterator[Item]:
    """This process's items, until any process was asked to stop: then all raise at the same count.

    They ask each other after every `ASK_EVERY` items. One that has fewer items than others goes on
    asking until none has any left, so that nobody waits for an answer that does not come.
    """
    import torch  # here: commands that only start others and wait do without it

    items = iter(items)
    device = world.device if world.size > 1 else None  # alone there is nobody to wait for
    num_busy = world.size
    while num_busy:
        count = 0
        for item in itertools.islice(items, ASK_EVERY):
            yield item
            count += 1
        flags = [int(stop.is_made), int(count == ASK_EVERY)]
        num_asked, num_busy = world.sum(torch.tensor(flags, device=device)).tolist()
        if num_asked:
            raise StoppedOnRequestError
