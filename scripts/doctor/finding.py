"""What a check finds: OK, a warning or a problem, and what to do about it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

OK, WARNING, PROBLEM = "OK", "WARNING", "PROBLEM"


@dataclass(frozen=True)
class Finding:
    """One sentence; `advice` says what to do about a warning or a problem."""

    level: str
    text: str
    advice: str = ""

    def lines(self) -> str:
        """The sentence, and the advice below it."""
        advice = f"\n{'':9}→ {self.advice}" if self.advice else ""
        return f"{self.level:<9}{self.text}{advice}"


def ok(text: str) -> Finding:
    return Finding(OK, text)


def warning(text: str, advice: str) -> Finding:
    return Finding(WARNING, text, advice)


def problem(text: str, advice: str) -> Finding:
    return Finding(PROBLEM, text, advice)


def catch(findings: Iterable[Finding], advice: str) -> Iterator[Finding]:
    """The findings of a check; an error about a user's files while it runs is a problem."""
    try:
        yield from findings
    except (ValueError, OSError) as error:
        yield problem(" ".join(str(error).split()), advice)


def summarise(findings: Iterable[Finding]) -> str:
    """Whether training can start, and how many problems and warnings there are."""
    levels = [finding.level for finding in findings]
    problems, warnings = levels.count(PROBLEM), levels.count(WARNING)
    state = f"not ready to train: problems: {problems}" if problems else "ready to train"
    return f"{state}; warnings: {warnings}" if warnings else state
