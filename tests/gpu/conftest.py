"""Tests that need a GPU. Each also runs on the CPU where that is meaningful, so that its code
is known to work before it is run on a GPU."""

from scripts.doctor.gpus import inspect_machine
from tests.gpu.report import list_versions, read_figures, read_outcomes, write_page


def pytest_terminal_summary(terminalreporter, config):
    """End `make test-gpu` with its report."""
    if config.getoption("markexpr") == "cuda":
        stats = terminalreporter.stats
        outcomes, figures = read_outcomes(stats), read_figures(stats)
        for line in write_page(inspect_machine(), list_versions(), outcomes, figures):
            terminalreporter.write_line(line)
