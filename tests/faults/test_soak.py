"""make soak samples a training run, stops it on request, and detects what it leaks."""

import sys

from tests.faults.runs import Run
from tests.small_runs import HANG

LEAKY = ["samples_per_minute=60", "warm_up=0.4", "train=modules=[tests.faults.leak]"]


def test_soak_detects_a_leak():
    words = ["minutes=0.5", *LEAKY]
    code, printed = Run([sys.executable, "-m", "scripts.soak", *words]).end(HANG)
    assert code == 1, printed
    assert "stopped on request" in printed
    assert "samples, " in printed
    (growth,) = [line for line in printed.splitlines() if line.startswith("GROWS: ")]
    assert "memory from" in growth
    assert "files from" in growth
