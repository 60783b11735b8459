"""make soak samples a training run, stops it on request, and detects what it leaks."""

import sys

from tests.faults.runs import Run
from tests.small_runs import HANG

LEAKY = ["samples_per_minute=60", "warm_up=0.4", "train=modules=[tests.faults.leak]"]


def test_soak_detects_a_leak():
    for minutes in (0.5, 2, 8):  # the run must have begun within a part of them
        words = [f"minutes={minutes}", *LEAKY]
        code, printed = Run([sys.executable, "-m", "scripts.soak", *words]).end(HANG + 60 * minutes)
        if "GROWS: " in printed:
            break
    assert code == 1, printed
    assert "stopped on request" in printed
    assert "samples, " in printed
    (growth,) = [line for line in printed.splitlines() if line.startswith("GROWS: ")]
    assert "memory from" in growth
    assert "files from" in growth
