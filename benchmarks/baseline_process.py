"""A baseline in a process of its own, as its users would run it: it has none of our settings."""

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Self

from benchmarks.timing import Work


class BaselineProcess:
    """The work that `make(*arguments)` gives, made there and called there, in turn with ours here.

    The first call waits until it is made.
    """

    def __init__(self, make: Callable[..., Work], *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, there = context.Pipe()
        self.process = context.Process(target=serve, args=(there, make, arguments), daemon=True)
        self.process.start()
        there.close()

    def __call__(self) -> None:
        self.connection.send(None)
        try:
            self.connection.recv()
        except EOFError:
            raise RuntimeError("the baseline's process has failed; see its error above") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()
        self.process.join()


def serve(connection: Connection, make: Callable[..., Work], arguments: tuple[Any, ...]) -> None:
    """Call the work whenever it is asked for, until nobody asks any more."""
    work = make(*arguments)
    while True:
        try:
            connection.recv()
        except EOFError:
            return
        work()
        connection.send(None)
