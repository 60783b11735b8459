"""Options of a head that change from epoch to epoch: λ, EM iterations, those of a user's head."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import attention
from attention.heads import registry
from data.registry import Registry

Number = int | float


class Schedule(Protocol):
    """A value for every epoch; built from what the config gives its kind and the last epoch."""

    def at(self, epoch: int) -> Number:
        """The value in force in an epoch, counted from 1."""
        ...


SCHEDULES: Registry[Callable[[Any, int], Schedule]] = Registry("head schedule")
register_schedule = SCHEDULES.register
FORMS = {
    "constant": "{constant: x}",
    "linear": "{linear: [from, to]}",
    "steps": "{steps: {1: x, 6: y}} with a value from epoch 1 on",
}


@register_schedule("constant")
class Constant:
    """{constant: x}, or x alone: the same value in every epoch."""

    def __init__(self, setting: Any, num_epochs: int) -> None:
        self.value = check_number(setting)

    def at(self, epoch: int) -> Number:
        return self.value


@register_schedule("linear")
class Linear:
    """{linear: [from, to]}: a line from the first epoch to the last."""

    def __init__(self, setting: Any, num_epochs: int) -> None:
        self.start, self.end = map(check_number, setting)
        self.num_epochs = num_epochs

    def at(self, epoch: int) -> Number:
        if self.num_epochs == 1:
            return self.end
        share = min((epoch - 1) / (self.num_epochs - 1), 1)
        return self.start + share * (self.end - self.start)


@register_schedule("steps")
class Steps:
    """{steps: {1: x, 6: y}}: each value from its epoch on."""

    def __init__(self, setting: Any, num_epochs: int) -> None:
        # by way of text, which may come from a file: 1.5 is no epoch, nor is true
        self.steps = sorted((int(str(epoch)), check_number(x)) for epoch, x in setting.items())
        if not self.steps or self.steps[0][0] != 1:
            raise ValueError("no value from epoch 1 on")

    def at(self, epoch: int) -> Number:
        return [value for first, value in self.steps if first <= epoch][-1]


def check_number(value: Any) -> Number:
    """The value, which must be a number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{value!r} is not a number")
    return value


def parse_schedule(name: str, setting: Any, num_epochs: int) -> Schedule:
    """The schedule of a setting: a number, or {kind: …} of a registered kind."""
    kind, inner = "constant", setting
    if isinstance(setting, Mapping) and len(setting) == 1:
        ((kind, inner),) = setting.items()
    try:
        return SCHEDULES[kind](inner, num_epochs)
    except (TypeError, ValueError, AttributeError) as error:
        *first, last = [FORMS.get(each, f"{{{each}: …}}") for each in SCHEDULES]
        raise ValueError(
            f"{name} must be a number, {', '.join(first)} or {last}, not {setting} ({error})"
        ) from None


class ScheduledHead:
    """A head's name and options, some of which follow a schedule over the epochs of a run.

    Which may do so, and whether a value is rounded, the head's class says: `Head.schedulable`.
    """

    def __init__(self, options: Mapping[str, Any], num_epochs: int) -> None:
        self.options, self.num_epochs = registry.complete_options(**options), num_epochs
        self.types = registry.find(options["name"]).schedulable
        self.schedules = {
            name: parse_schedule(f"attention.{name}", setting, num_epochs)
            for name, setting in options.items()
            if name in self.types
        }
        for name, setting in options.items():
            if name not in self.types and is_schedule(setting):
                raise ValueError(
                    f"attention.{name} cannot follow a schedule; of the head '{options['name']}' "
                    f"these can: {', '.join(self.types) or 'none'}"
                )

    def values_at(self, epoch: int) -> dict[str, Number]:
        """The scheduled options and the values in force in an epoch."""
        return {
            name: self.fit(name, schedule.at(epoch)) for name, schedule in self.schedules.items()
        }

    def fit(self, name: str, value: Number) -> Number:
        """A value between two whole numbers rounded, where the option is one; 2.5 alone is not."""
        is_between = self.types[name] is int and not isinstance(self.schedules[name], Constant)
        return round(value) if is_between else value

    def options_at(self, epoch: int) -> dict[str, Any]:
        """Name and options with the values in force in an epoch."""
        return {**self.options, **self.values_at(epoch)}

    def apply(self, head: attention.Head, epoch: int) -> None:
        """Give a built head the values in force in an epoch."""
        for name, value in self.values_at(epoch).items():
            setattr(head, name, value)

    def build(self, epoch: int = 1) -> attention.Head:
        """The head as it is in an epoch."""
        return attention.build(**self.options_at(epoch))

    def check(self) -> None:
        """Raise for a value that the head rejects, in whichever epoch: a run would end there."""
        self.build()
        if all(isinstance(schedule, Constant) for schedule in self.schedules.values()):
            return
        for epoch in range(2, self.num_epochs + 1):
            try:
                self.build(epoch)
            except ValueError as error:
                raise ValueError(f"attention in epoch {epoch}: {error}") from None


def is_schedule(setting: Any) -> bool:
    """Whether a setting has the form {kind: …} of a registered kind."""
    return isinstance(setting, Mapping) and len(setting) == 1 and {*setting} <= {*SCHEDULES}
