"""What a benchmark finds: values over the rounds, rows of its table, and both of a part."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Measurement:
    """`values` are one number for each round of an interleaved run."""

    name: str
    values: tuple[float, ...]
    unit: str
    estimate: float | None = None  # of `make cost`

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def line(self) -> str:
        """The median, the lowest and highest value when there are several, and an estimate."""
        lowest, highest = show(min(self.values)), show(max(self.values))
        spread = f"  ({lowest} to {highest})" if len(self.values) > 1 else ""
        estimate = "" if self.estimate is None else f"; make cost: {show(self.estimate)}"
        return f"{self.name:<58} {show(self.median):>9} {self.unit}{spread}{estimate}"


@dataclass(frozen=True)
class Row:
    """A line of the table: a ratio and its target, such as "≤ 0.5" or "≥ 2"."""

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
        reached = "yes" if self.reached else "no"
        return [self.work, self.against, self.reach, show(self.median), spread, reached]


@dataclass(frozen=True)
class Part:
    """What one part of the benchmark found: rows of the table, and the measurements behind them."""

    rows: list[Row] = field(default_factory=list)
    details: list[Measurement] = field(default_factory=list)

    def __add__(self, other: "Part") -> "Part":
        return Part(self.rows + other.rows, self.details + other.details)


def as_measurements(
    title: str, values: Mapping[str, Sequence[float]], unit: str = "ms"
) -> list[Measurement]:
    """One measurement for each work that took turns."""
    return [Measurement(f"{title}: {name}", tuple(each), unit) for name, each in values.items()]


def ratios(above: Sequence[float], below: Sequence[float]) -> tuple[float, ...]:
    """The ratio round by round: what disturbed a round disturbed both."""
    return tuple(a / b for a, b in zip(above, below, strict=True))


def show(value: float) -> str:
    """A number with three or more digits that matter."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
