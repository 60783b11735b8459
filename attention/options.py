"""Checks of the options a head is built with: each error is one sentence that names the option."""

import operator
from numbers import Real
from typing import Literal, TypeVar

Covariance = Literal["full", "spherical"]
Floor = float | Literal["cell"]
Choice = TypeVar("Choice", bound=str)


def check_whole_number(name: str, value: int, least: int) -> int:
    """The value, which must be a whole number from `least` on."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or operator.index(value) < least:
        raise ValueError(f"{name} must be a whole number from {least} on, not {value!r}")
    return operator.index(value)


def check_choice(name: str, value: Choice, choices: tuple[Choice, ...]) -> Choice:
    """The value, which must be one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, not {value!r}")
    return value


def check_positive(name: str, value: float, zero: bool = False) -> float:
    """The value, which must be a finite positive number, or zero where that is allowed."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not (0 < value < float("inf") or (zero and value == 0)):
        raise ValueError(f"{name} must be {'zero or ' if zero else ''}positive, not {value!r}")
    return float(value)


def check_floor(name: str, value: Floor) -> Floor:
    """The floor of a variance, which must be a number or the word "cell"."""
    if isinstance(value, str) and value != "cell":
        raise ValueError(f"{name} must be a variance such as 1e-6, or 'cell', not {value!r}")
    return value if isinstance(value, str) else check_positive(name, value, zero=True)
