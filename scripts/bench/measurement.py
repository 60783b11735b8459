"""A figure of a benchmark: its values over the rounds, and what is to be reached."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Measurement:
    """`values` are one number for each round of an interleaved run."""

    name: str
    values: tuple[float, ...]
    unit: str

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def line(self) -> str:
        """Write the median, and the lowest and highest value when there are several."""
        return f"{self.name:<58} {show(self.median):>9} {self.unit}{self.spread()}"

    def spread(self) -> str:
        """The lowest and highest value when there are several."""
        if len(self.values) == 1:
            return ""
        return f"  ({show(min(self.values))} to {show(max(self.values))})"


@dataclass(frozen=True)
class Row:
    """A line of the table: a ratio and its reach, such as "≤ 0.5" or "≥ 2"."""

    work: str
    against: str
    reach: str
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def reached(self) -> bool:
        sign, number = self.reach.split()
        return self.median <= float(number) if sign == "≤" else self.median >= float(number)

    def cells(self) -> list[str]:
        """What the table shows."""
        spread = f"{show(min(self.values))} – {show(max(self.values))}"
        verdict = "yes" if self.reached else "no"
        return [self.work, self.against, self.reach, show(self.median), spread, verdict]


@dataclass(frozen=True)
class Part:
    """What one part of the benchmark found: rows of the table, and the figures behind them."""

    rows: list[Row] = field(default_factory=list)
    details: list[Measurement] = field(default_factory=list)


def show(value: float) -> str:
    """Write a number with three or more digits that matter."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def ratios(above: Sequence[float], below: Sequence[float]) -> tuple[float, ...]:
    """The ratio round by round: what disturbed a round disturbed both."""
    return tuple(a / b for a, b in zip(above, below, strict=True))
