"""Imported by a run that leaks memory and open files (modules=[tests.faults.leak])."""

import os
import time
from typing import Any

from mcan.training.step import Stepper

EVERY = 0.1  # seconds, so that a fast machine does not run out of files
kept: list[Any] = []
original = Stepper.step
last = time.monotonic()


def step(self: Stepper, *arguments: Any) -> Any:
    """A step that leaks."""
    global last
    if time.monotonic() - last >= EVERY:
        last = time.monotonic()
        kept.append(bytearray(b"x") * 4_000_000)
        kept.append(open(os.devnull))  # noqa: SIM115 - never closed: that is the fault
    return original(self, *arguments)


Stepper.step = step  # type: ignore[method-assign]
