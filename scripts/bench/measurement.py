"""One figure of a benchmark: its repeated values, their median and spread."""

import statistics
from dataclasses import dataclass


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
        text = f"{self.name:<58} {show(self.median):>9} {self.unit}"
        if len(self.values) > 1:
            text += f"  ({show(min(self.values))} to {show(max(self.values))})"
        return text


def show(value: float) -> str:
    """Write a number with three or more digits that matter."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def divide(name: str, above: Measurement, below: Measurement, unit: str = "×") -> Measurement:
    """Give the ratio round by round: what disturbed a round disturbed both."""
    pairs = zip(above.values, below.values, strict=True)
    return Measurement(name, tuple(a / b for a, b in pairs), unit)
