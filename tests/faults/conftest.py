"""Fault injection: `make test-faults` runs these tests, `make test` does not."""

from pathlib import Path

import pytest

from tests.faults.fuzzing import CASES
from tests.faults.runs import Run
from tests.small_runs import AT_EVERY_STEP, settings, train_command

HERE = Path(__file__).parent
KILLS = pytest.StashKey[list[str]]()


@pytest.hookimpl(tryfirst=True)  # before -m selects by marker
def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.faults)


@pytest.fixture
def kill_log(request):
    """Record a kill; all of them are listed after the tests."""
    kills = request.config.stash.setdefault(KILLS, [])

    def write(num_processes, moment, resumes_from):
        kills.append(f"{num_processes} process(es): {moment}; resumes from step {resumes_from}")

    return write


def pytest_terminal_summary(terminalreporter):
    if CASES:
        listed = ", ".join(f"{count:,} {what}" for what, count in sorted(CASES.items()))
        terminalreporter.write_line(f"fuzzing tried {CASES.total():,} cases: {listed}")
    kills = terminalreporter.config.stash.get(KILLS, [])
    if kills:
        terminalreporter.section(f"{len(kills)} kills")
        for number, kill in enumerate(kills, 1):
            terminalreporter.write_line(f"{number:3} {kill}")


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session")
def words(small_dataset, runs):
    """Settings of all runs that must end with the same result."""
    return settings(small_dataset, runs, "optim.epochs=3")


class References(dict[int, Path]):
    """By number of processes: an uninterrupted run with a checkpoint of every step."""

    def __init__(self, words: list[str], runs: Path) -> None:
        super().__init__()
        self.words, self.runs = [*words, "runtime.keep=1000", AT_EVERY_STEP], runs

    def __missing__(self, number: int) -> Path:
        name = f"reference_{number}"
        code, printed = Run(train_command([*self.words, f"name={name}"], number)).end()
        assert code == 0, printed
        self[number] = self.runs / name
        return self[number]


@pytest.fixture(scope="session")
def references(words, runs):
    return References(words, runs)
