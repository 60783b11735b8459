"""Heads by name: a config names one, and a user adds one without touching this package."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from attention.heads.head import Head

AnyHead = TypeVar("AnyHead", bound=type[Head])

VARIANTS = ("normaliser", "density")  # options that make another attention mechanism of a head

_heads: dict[str, type[Head]] = {}


def register(name: str) -> Callable[[AnyHead], AnyHead]:
    """Class decorator: make a head available under a name that is not taken."""

    def decorate(head: AnyHead) -> AnyHead:
        if name in _heads and not _is_reimport(_heads[name], head):
            raise ValueError(f"an attention head named '{name}' is already registered")
        if not (isinstance(head, type) and issubclass(head, Head)):
            raise ValueError(f"the head '{name}' must be a class derived from attention.Head")
        _heads[name] = head
        return head

    return decorate


def available() -> tuple[str, ...]:
    """The registered names, sorted."""
    return tuple(sorted(_heads))


def find(name: str) -> type[Head]:
    """The class of a head by its name."""
    if name not in _heads:
        raise ValueError(f"there is no attention head '{name}'; there are {', '.join(available())}")
    return _heads[name]


def complete_options(name: str, **options: Any) -> dict[str, Any]:
    """Name and options of a head, with the defaults of those that are not given.

    Defaults that a config cannot hold, other than numbers and texts, are left to the class.
    """
    parameters = inspect.signature(find(name)).parameters.values()
    plain = (str, int, float, bool, type(None))
    defaults = {each.name: each.default for each in parameters if isinstance(each.default, plain)}
    return {"name": name, **defaults, **options}


def name_variant(name: str, **options: Any) -> str:
    """A head's name, with its normaliser and its density where they are not the defaults.

    This is what figures and reports call it: "multimodal, entmax15, paraboloid".
    """
    defaults = complete_options(name)
    chosen = {option: options.get(option, defaults.get(option)) for option in VARIANTS}
    return ", ".join([name, *(str(v) for n, v in chosen.items() if v != defaults.get(n))])


def build(name: str, **options: Any) -> Head:
    """A head by name; options go to its constructor."""
    parameters = inspect.signature(find(name)).parameters
    takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    unknown = [] if takes_any else [option for option in options if option not in parameters]
    if unknown:
        known = ", ".join(parameters) or "none"
        raise ValueError(f"the head '{name}' has no option '{unknown[0]}'; its options are {known}")
    required = [each for each in parameters.values() if each.default is each.empty]
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    missing = [p.name for p in required if p.kind not in variadic and p.name not in options]
    if missing:
        raise ValueError(f"the head '{name}' needs its option '{missing[0]}', which has no default")
    return _heads[name](**options)


def _is_reimport(registered: type[Head], head: type[Head]) -> bool:
    """Whether a module that is imported again (a reload, a notebook) registers its own class."""
    return (registered.__module__, registered.__qualname__) == (head.__module__, head.__qualname__)
