"""make soak tells a training that leaks from one that does not."""

import sys

from tests.faults.runs import Run

BRIEF = ["minutes=0.5", "samples_per_minute=60", "warm_up=0.4"]


def soak(*words):
    return Run([sys.executable, "-m", "scripts.soak", *BRIEF, *words]).end()


def test_a_training_that_leaks():
    code, printed = soak("train=modules=[tests.faults.leak]")
    assert code == 1, printed
    (verdict,) = [line for line in printed.splitlines() if line.startswith("GROWS: ")]
    assert "memory from" in verdict
    assert "files from" in verdict
