"""What a training with a leak imports (modules=[tests.faults.leak]): memory and files."""

import os
from typing import Any

from mcan.step import Stepper

kept: list[Any] = []
original = Stepper.step


def step(self: Stepper, *arguments: Any) -> Any:
    """A step that keeps what it should not."""
    kept.append(bytearray(b"x") * 2_000_000)
    if len(kept) < 500:
        kept.append(open(os.devnull))  # noqa: SIM115 - never closed: that is the fault
    return original(self, *arguments)


Stepper.step = step  # type: ignore[method-assign]
