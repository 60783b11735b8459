"""Values that change over a run: λ, EM iterations, the learning rate. Epochs count from 1."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Number = int | float


@dataclass(frozen=True)
class Schedule:
    """A value for every epoch: the last entry whose epoch has come, or a line between two."""

    steps: tuple[tuple[int, Number], ...]  # (from this epoch on, value), the first from epoch 1
    linear: bool = False

    def at(self, epoch: int) -> Number:
        """The value in force in an epoch."""
        if self.linear:
            return self._between(epoch)
        return [value for first, value in self.steps if first <= epoch][-1]

    def _between(self, epoch: int) -> Number:
        (first, start), (last, end) = self.steps
        if last == first:
            return end
        share = min(max((epoch - first) / (last - first), 0), 1)
        return start + share * (end - start)


def parse_schedule(name: str, setting: Any, num_epochs: int) -> Schedule:
    """A number; {constant: x}; {linear: [from, to]} over all epochs; {steps: {1: x, 6: y}}."""
    if isinstance(setting, (int, float)) and not isinstance(setting, bool):
        return Schedule(((1, setting),))
    try:
        if isinstance(setting, Mapping) and len(setting) == 1:
            ((kind, value),) = setting.items()
            if kind == "constant":
                return Schedule(((1, _number(value)),))
            if kind == "linear":
                start, end = value
                return Schedule(((1, _number(start)), (num_epochs, _number(end))), linear=True)
            if kind == "steps":
                steps = sorted((int(epoch), _number(x)) for epoch, x in value.items())
                if steps and steps[0][0] == 1:
                    return Schedule(tuple(steps))
    except (TypeError, ValueError, AttributeError):
        pass
    raise ValueError(
        f"{name} must be a number, {{constant: x}}, {{linear: [from, to]}} or "
        f"{{steps: {{1: x, 6: y}}}} with a value from epoch 1 on, not {setting}"
    )


def _number(value: Any) -> Number:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError
    return value


@dataclass(frozen=True)
class EpochRate:
    """The paper's: min(slope·t, cap) for epoch t, then times `decay` every `decay_every` epochs.

    "After 10 epochs, multiplied by 0.2 every 2 epochs" reads: 0.2 in epochs 11–12, 0.04 in 13–14.
    """

    slope: float
    cap: float
    decay: float
    decay_after: int
    decay_every: int

    def at(self, epoch: int, step: int, num_steps: int) -> float:
        """The learning rate in an epoch; it does not change with the step within it."""
        plateau = min(self.slope * min(epoch, self.decay_after), self.cap)
        num_decays = max(0, -(-(epoch - self.decay_after) // self.decay_every))
        return float(plateau * self.decay**num_decays)


@dataclass(frozen=True)
class StepRate:
    """A linear warm-up to the peak, the peak, and a linear decay to zero at the end of the run."""

    peak: float
    warmup_steps: int
    decay_share: float  # the part of all steps over which it decays

    def at(self, epoch: int, step: int, num_steps: int) -> float:
        """The learning rate at a global step (from 0) of `num_steps`."""
        warm = min(1.0, (step + 1) / max(1, self.warmup_steps))
        left = (num_steps - step) / max(1.0, self.decay_share * num_steps)
        return self.peak * min(warm, left, 1.0)


LearningRate = EpochRate | StepRate
