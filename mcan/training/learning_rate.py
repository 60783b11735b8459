"""Learning rates over a run, by name: optim.rate={name: warmup_cosine, …}. Epochs count from 1."""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Protocol

from data.registry import Registry


class LearningRate(Protocol):
    """The learning rate of every step of a run."""

    def at(self, epoch: int, step: int, num_steps: int) -> float:
        """In an epoch (from 1), at a global step (from 0) of the `num_steps` of the whole run."""
        ...


RATES: Registry[Callable[..., LearningRate]] = Registry("learning-rate schedule")
register_rate = RATES.register
FORMS = {
    float: "a number of at least 0",
    int: "a whole number of at least 0",
    Sequence[int]: "a list of epochs such as [10, 12]",
}


@register_rate("constant")
@dataclass(frozen=True)
class ConstantRate:
    """The same value at every step."""

    value: float

    def at(self, epoch: int, step: int, num_steps: int) -> float:
        return self.value


@register_rate("paper")
@dataclass(frozen=True)
class PaperRate:
    """The paper's: min(slope·t, cap) in epoch t, then times `decay` every `decay_every` epochs.

    "After 10 epochs, multiplied by 0.2 every 2 epochs" reads: 0.2 in epochs 11–12, 0.04 in 13–14.
    """

    slope: float
    cap: float
    decay: float
    decay_after: int
    decay_every: int

    def __post_init__(self) -> None:
        if self.decay_every < 1:
            raise ValueError(f"optim.rate.decay_every must be at least 1, not {self.decay_every}")

    def at(self, epoch: int, step: int, num_steps: int) -> float:
        plateau = min(self.slope * min(epoch, self.decay_after), self.cap)
        num_decays = max(0, -(-(epoch - self.decay_after) // self.decay_every))
        return float(plateau * self.decay**num_decays)


@register_rate("mcan")
@dataclass(frozen=True)
class MCANRate:
    """MCAN's code: ¼, ½, ¾ and all of the peak, then times `decay` after certain epochs."""

    peak: float
    warmup_epochs: int = 3
    decay: float = 0.2
    decay_epochs: Sequence[int] = (10, 12)

    def at(self, epoch: int, step: int, num_steps: int) -> float:
        warm = min(1.0, epoch / (self.warmup_epochs + 1))
        return self.peak * warm * self.decay ** sum(epoch > last for last in self.decay_epochs)


@register_rate("warmup_linear")
@dataclass(frozen=True)
class WarmupLinearRate:
    """A linear warm-up to the peak, the peak, and a linear decay to zero at the end of the run."""

    peak: float
    warmup_steps: int
    decay_share: float  # the part of all steps over which it decays
    warmup_share: float = 0.0  # of all steps: the warm-up is at least as long

    def at(self, epoch: int, step: int, num_steps: int) -> float:
        warmup_steps = max(1, self.warmup_steps, round(self.warmup_share * num_steps))
        warm = min(1.0, (step + 1) / warmup_steps)
        left = (num_steps - step) / max(1.0, self.decay_share * num_steps)
        return self.peak * min(warm, left, 1.0)


@register_rate("warmup_cosine")
@dataclass(frozen=True)
class CosineRate:
    """A linear warm-up to the peak, then half a cosine down to `final` at the end of the run."""

    peak: float
    warmup_steps: int
    final: float = 0.0

    def at(self, epoch: int, step: int, num_steps: int) -> float:
        if step < self.warmup_steps:
            return self.peak * (step + 1) / self.warmup_steps
        share = (step - self.warmup_steps) / max(1, num_steps - self.warmup_steps)
        return self.final + (self.peak - self.final) * (1 + math.cos(math.pi * share)) / 2


def build_rate(options: Mapping[str, Any]) -> LearningRate:
    """The learning rate of `optim.rate`."""
    arguments = with_name(options)
    name = arguments.pop("name")
    entry = RATES[name]
    check_arguments(name, entry, arguments)
    if is_dataclass(entry):
        for field in fields(entry):
            if field.name in arguments:
                check_numbers(f"optim.rate.{field.name}", arguments[field.name], field.type)
    return entry(**arguments)


def with_name(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a rate with its name; without one, as in version 0.1, its keys tell which."""
    return {"name": "warmup_linear" if "peak" in options else "paper", **options}


def check_arguments(name: str, entry: Callable[..., object], arguments: Mapping[str, Any]) -> None:
    """Raise unless the arguments are those that a learning rate takes."""
    known = inspect.signature(entry).parameters
    needed = [each.name for each in known.values() if each.default is each.empty]
    optional = [each for each in known if each not in needed]
    if not set(needed) <= set(arguments) <= set(known):
        raise ValueError(
            f"optim.rate of the learning-rate schedule '{name}' needs {', '.join(needed)}"
            + (f" and may have {', '.join(optional)}" if optional else "")
            + f"; it has {', '.join(arguments) or 'none'}"
        )


def check_numbers(setting: str, value: Any, declared: Any) -> None:
    """Raise unless a setting holds finite numbers, none negative, whole ones where declared so."""
    form = FORMS.get(declared)
    if form is None:  # an argument of a user-defined schedule, for its class to check
        return
    is_list = isinstance(value, (list, tuple))
    kinds = (int, float) if declared is float else (int,)
    fits = [type(x) in kinds and 0 <= x < math.inf for x in (value if is_list else [value])]
    if is_list != (declared == Sequence[int]) or not all(fits):
        raise ValueError(f"{setting} must be {form}, not {value!r}")
