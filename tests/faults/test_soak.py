"""make soak detects a training run that leaks memory and files."""

import sys

from tests.faults.runs import Run

BRIEF = ["minutes=0.5", "samples_per_minute=60", "warm_up=0.4"]


def soak(*words):
    return Run([sys.executable, "-m", "scripts.soak", *BRIEF, *words]).end()


def test_soak_detects_a_leak():
    code, printed = soak("train=modules=[tests.faults.leak]")
    assert code == 1, printed
    (growth,) = [line for line in printed.splitlines() if line.startswith("GROWS: ")]
    assert "memory from" in growth
    assert "files from" in growth
