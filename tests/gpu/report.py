"""The page that `make test-gpu` ends with, for a user to paste into an issue."""

import importlib.metadata
import platform
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from scripts.doctor.gpus import Machine

PACKAGES = ("continuous-visual-attention", "torch", "triton", "numpy")
STATES = {"failed": "failed", "error": "failed", "passed": "passed", "skipped": "skipped"}
FIGURE = "figure"  # the property under which a test records a line about speed
WIDTH = 100  # of a reason
RULE = f"{' make test-gpu: please paste this into an issue ':-^90}"


class Outcome(NamedTuple):
    """How one test ended."""

    test: str  # its function
    state: str  # failed, passed or skipped
    reason: str = ""


def write_page(
    machine: Machine, versions: Sequence[str], outcomes: Sequence[Outcome], figures: Sequence[str]
) -> Iterator[str]:
    """The machine; each property, and why it does not hold or was not tested; the speed."""
    yield RULE
    for gpu in machine.devices:
        yield f"GPU: {gpu.name}, {gpu.total_memory / 1e9:.0f} GB, sm_{gpu.major}{gpu.minor}"
    if not machine.devices:
        yield "GPU: none"
    yield f"driver: {machine.driver or 'none'}"
    yield f"CUDA {machine.cuda or 'none'}, NCCL {machine.nccl or 'none'}, {', '.join(versions)}"
    yield ""
    for test in dict.fromkeys(outcome.test for outcome in outcomes):
        yield from describe_property([each for each in outcomes if each.test == test])
    yield ""
    yield from figures or ["no step was timed"]
    yield "-" * len(RULE)


def describe_property(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The sentence that a test's name is, how its cases ended, and their reasons."""
    states = [outcome.state for outcome in outcomes]
    counts = {state: states.count(state) for state in dict.fromkeys(STATES.values())}
    worst = next(state for state, count in counts.items() if count)
    sentence = outcomes[0].test.removeprefix("test_").replace("_", " ")
    cases = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    yield f"{worst.upper() if worst == 'failed' else worst:<8} {sentence} ({cases})"
    for reason in dict.fromkeys(outcome.reason for outcome in outcomes if outcome.reason):
        yield f"{'':<8}   {reason[:WIDTH]}"


def list_versions() -> list[str]:
    """Python, and the packages that are there."""
    there = {each.name for each in importlib.metadata.distributions()}
    packages = [f"{name} {importlib.metadata.version(name)}" for name in PACKAGES if name in there]
    return [f"Python {platform.python_version()}", *packages]


def read_outcomes(stats: Mapping[str, Sequence[Any]]) -> list[Outcome]:
    """pytest's reports as outcomes, failures first."""
    return [
        Outcome(report.nodeid.split("::")[-1].split("[")[0], state, find_reason(report))
        for category, state in STATES.items()
        for report in stats.get(category, [])
    ]


def find_reason(report: Any) -> str:
    """Why a test was skipped, or which case failed and the first line of its error."""
    if report.outcome == "passed":
        return ""
    if report.outcome == "skipped":
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    crash = getattr(report.longrepr, "reprcrash", None)  # absent where a fixture is missing
    message = crash.message if crash else str(report.longrepr)
    case = report.nodeid.partition("[")[2].removesuffix("]")
    return f"{case}: {message.strip().splitlines()[0]}".removeprefix(": ")


def read_figures(stats: Mapping[str, Sequence[Any]]) -> list[str]:
    """The lines about speed that tests recorded."""
    recorded = [each for report in stats.get("passed", []) for each in report.user_properties]
    return [value for name, value in recorded if name == FIGURE]
