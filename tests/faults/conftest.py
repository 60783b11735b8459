"""Faults, injected for real: `make test-faults` runs them, a plain `make test` does not."""

import shutil
from pathlib import Path

import pytest

from data.splits import Folder
from tests.faults.fuzzing import CASES

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before -m chooses by marker
def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.faults)


@pytest.fixture
def data(small_dataset, tmp_path):
    """A copy of the dataset without its pictures."""
    ignore = shutil.ignore_patterns("images", "human_attention")
    shutil.copytree(small_dataset, tmp_path / "data", ignore=ignore)
    return Folder(tmp_path / "data")


def pytest_terminal_summary(terminalreporter):
    if CASES:
        listed = ", ".join(f"{count:,} {what}" for what, count in sorted(CASES.items()))
        terminalreporter.write_line(f"fuzzing tried {CASES.total():,} cases: {listed}")
