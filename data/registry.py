"""Named values that a user's module may add to: layouts, backbones, metrics, trackers, …"""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar, overload

Value = TypeVar("Value")


class Registry(Generic[Value]):
    """A table from names to values of one kind; `kind` names it in errors."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.values: dict[str, Value] = {}

    @overload
    def register(self, name: str) -> Callable[[Value], Value]: ...
    @overload
    def register(self, name: str, value: Value) -> Value: ...
    def register(self, name: str, value: Value | None = None) -> Value | Callable[[Value], Value]:
        """Add `value` under a name that is not taken; without it, give a decorator that does."""
        if value is None:
            return lambda decorated: self.register(name, decorated)
        if name in self.values and not is_same(self.values[name], value):
            raise ValueError(f"a {self.kind} named '{name}' is already registered")
        self.values[name] = value
        return value

    def __getitem__(self, name: str) -> Value:
        if name not in self.values:
            raise ValueError(
                f"there is no {self.kind} '{name}'; there are {', '.join(sorted(self))}, and "
                "modules=[…] names a module of yours that registers another"
            )
        return self.values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)


def is_same(old: object, new: object) -> bool:
    """Whether a module that is imported again (a reload, a notebook) registers its own value."""
    if hasattr(old, "__qualname__") and hasattr(new, "__qualname__"):  # classes and functions
        return (old.__module__, old.__qualname__) == (new.__module__, new.__qualname__)
    return old == new
