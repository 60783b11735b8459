"""What the doctor found: good, doubtful or wrong, and what to do about it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

OK, WARNING, PROBLEM = "OK", "WARNING", "PROBLEM"


@dataclass(frozen=True)
class Finding:
    """One sentence; `advice` says what to do where it is not good."""

    level: str
    text: str
    advice: str = ""

    def lines(self) -> str:
        """The sentence, and the advice below it."""
        advice = f"\n{'':9}→ {self.advice}" if self.advice else ""
        return f"{self.level:<9}{self.text}{advice}"


def good(text: str) -> Finding:
    return Finding(OK, text)


def doubtful(text: str, advice: str) -> Finding:
    return Finding(WARNING, text, advice)


def wrong(text: str, advice: str) -> Finding:
    return Finding(PROBLEM, text, advice)


def catch(check: Callable[[], Iterable[Finding]], advice: str) -> Iterator[Finding]:
    """The findings of a check; what it raises about a user's files is a problem of its own."""
    try:
        yield from check()
    except (ValueError, OSError) as error:
        yield wrong(" ".join(str(error).split()), advice)


def summarise(findings: Iterable[Finding]) -> str:
    """How many of each."""
    levels = [finding.level for finding in findings]
    problems, warnings = levels.count(PROBLEM), levels.count(WARNING)
    if problems:
        return f"{problems} to mend before training, {warnings} to know about"
    if warnings:
        return f"ready to train; {warnings} to know about"
    return "ready to train"
