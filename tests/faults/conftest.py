"""Fault injection: `make test-faults` runs these tests, `make test` does not."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.fuzzing import CASES
from tests.faults.length import ARGUMENTS, OPTIONS, read_length
from tests.faults.runs import Run
from tests.small_runs import AT_EVERY_STEP, settings, train_command

HERE = Path(__file__).parent
HEAD = "multimodal"
DONE = pytest.StashKey[list[str]]()
CASE, KILL = "case", "kill"  # properties of a test's report, which xdist brings here


def pytest_addoption(parser):
    for option, what in OPTIONS.items():
        parser.addoption(f"--{option}", type=int, help=f"try so many {what}, and nothing else")
    parser.addoption("--seed", type=int, help="draw other cases and kills")
    parser.addoption("--repeat", help="name:number of one case, or kills:number: it alone")


def pytest_configure(config):
    done = getattr(config, "workerinput", {}).get("done")
    config.stash[DONE] = read_length(config).list_done() if done is None else done


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """All processes leave out the same parts, also one that takes the place of a lost one."""
    node.workerinput["done"] = node.config.stash[DONE]


@pytest.fixture(scope="session")
def length(pytestconfig):
    return read_length(pytestconfig)


@pytest.hookimpl(tryfirst=True)  # before -m selects by marker
def pytest_collection_modifyitems(config, items):
    length = read_length(config)
    for item in list(items):
        if HERE not in item.path.parents:
            continue
        item.add_marker(pytest.mark.faults)
        given = item.callspec.params if hasattr(item, "callspec") else {}
        records = [length.record(given[name]).name for name in ARGUMENTS if name in given]
        is_done = any(record in config.stash.get(DONE, []) for record in records)
        if is_done or not length.selects(item.fixturenames):
            items.remove(item)
            config.hook.pytest_deselected(items=[item])


@pytest.fixture
def kill_log(record_property):
    """Record a kill; all of them are listed after the tests."""

    def write(kill):
        record_property(KILL, kill)
        return kill

    return write


@pytest.fixture(autouse=True)
def count_cases(record_property):
    before = CASES.copy()
    yield
    record_property(CASE, dict(CASES - before))


def pytest_terminal_summary(terminalreporter, config):
    reports = [each for group in terminalreporter.stats.values() for each in group]
    ended = [each for each in reports if getattr(each, "when", None) == "teardown"]
    found = [pair for report in ended for pair in report.user_properties]
    cases = sum((Counter(value) for name, value in found if name == CASE), Counter())
    if cases:
        listed = ", ".join(f"{count:,} {what}" for what, count in sorted(cases.items()))
        terminalreporter.write_line(f"fuzzing tried {cases.total():,} cases: {listed}")
    kills = [value for name, value in found if name == KILL]
    if kills:
        terminalreporter.section(f"{len(kills)} kills")
        for number, kill in enumerate(kills, 1):
            terminalreporter.write_line(f"{number:3} {kill}")
    for crash in read_length(config).list_crashes():
        terminalreporter.write_line(f"A PROCESS WAS LOST: {crash}", red=True)


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session")
def words_of(small_dataset, runs):
    """By head: settings of all runs that must end with the same result."""
    return lambda head: settings(
        small_dataset, runs, "optim.epochs=3", *([f"attention={head}"] if head != HEAD else [])
    )


@pytest.fixture(scope="session")
def words(words_of):
    return words_of(HEAD)


class References(dict[int | tuple[int, str], Path]):
    """By number of processes, and head: an uninterrupted run with a checkpoint of every step."""

    def __init__(self, words_of: Callable[[str], list[str]], runs: Path) -> None:
        super().__init__()
        self.words_of, self.runs = words_of, runs

    def __missing__(self, key: int | tuple[int, str]) -> Path:
        if not isinstance(key, tuple):
            return self[key, HEAD]
        number, head = key
        name = f"reference_{number}_{head}"
        words = [*self.words_of(head), "runtime.keep=1000", AT_EVERY_STEP, f"name={name}"]
        code, printed = Run(train_command(words, number)).end()
        assert code == 0, printed
        self[key] = self.runs / name
        return self[key]


@pytest.fixture(scope="session")
def references(words_of, runs):
    return References(words_of, runs)
