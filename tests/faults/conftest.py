"""Faults, injected for real: `make test-faults` runs them, a plain `make test` does not."""

from pathlib import Path

import pytest

from tests.faults.fuzzing import CASES

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before -m chooses by marker
def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.faults)


def pytest_terminal_summary(terminalreporter):
    if CASES:
        listed = ", ".join(f"{count:,} {what}" for what, count in sorted(CASES.items()))
        terminalreporter.write_line(f"fuzzing tried {CASES.total():,} cases: {listed}")
