"""The processes of a command, as its settings ask for them."""

import contextlib
from collections.abc import Iterator

import torch

from mcan.runtime.distributed import World, open_world
from mcan.runtime.settings import Runtime
from scripts.cli.command import CRASHED, fail


@contextlib.contextmanager
def open_processes(runtime: Runtime) -> Iterator[World]:
    """The world of a command for as long as the block lasts.

    A process that runs out of memory says so before it leaves the others: they end because of it.
    """
    with open_world(runtime.device, runtime.timeout_minutes) as world:
        try:
            yield world
        except (MemoryError, torch.OutOfMemoryError) as error:
            fail(error, CRASHED)
