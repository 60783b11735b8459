"""Settings have types: a value must be of the kind that the config's own value is."""

import difflib
from collections.abc import Iterator
from typing import Any

MISSING = "???"  # the config's own value of what a user must give: a path
FREE = ("attention",)  # groups that check their own settings, as a head of one's own must
OPTIONAL = ("resize", "launcher.gres")  # may be null although the config has a value


def find_problems(settings: Any, defaults: Any, prefix: str = "") -> Iterator[str]:
    """One sentence for each setting that is unknown or of another type than its default."""
    for key, value in settings.items():
        name = f"{prefix}{key}"
        if key not in defaults:
            yield describe_unknown(name, [f"{prefix}{known}" for known in defaults])
        elif isinstance(value, dict) and isinstance(defaults[key], dict):
            if name not in FREE:
                yield from find_problems(value, defaults[key], f"{name}.")
        elif not (value is None and name in OPTIONAL) and not is_like(value, defaults[key]):
            yield describe_type(name, value, defaults[key])


def is_like(value: Any, default: Any) -> bool:
    """Whether a value is of its default's type; a whole number is a number, null has no type."""
    if default is None:
        return True
    if isinstance(default, list):
        kinds = default[:1] * len(value) if isinstance(value, list) else []
        return isinstance(value, list) and all(map(is_like, value, kinds))
    if type(default) is float:
        return type(value) in (int, float)
    return type(value) is type(default)


def describe_type(name: str, value: Any, default: Any) -> str:
    """Say what a setting must be."""
    if isinstance(default, bool):
        expected = "true or false"
    elif isinstance(default, int):
        expected = "a whole number"
    elif isinstance(default, float):
        expected = "a number"
    elif isinstance(default, list):
        expected = f"a list such as {show(default or ['a', 'b'])}"
    elif isinstance(default, dict):
        expected = f"settings such as {name}.{next(iter(default))}=…"
    elif default in ("", MISSING):
        expected = "text, such as a path"
    else:
        expected = f"text such as {show(default)}"
    sentence = f"{name} must be {expected}, not {show(value)}"
    if isinstance(default, str) and isinstance(value, int | float):
        sentence += f"; quote it: \"{name}='{show(value)}'\""
    return sentence


def show(value: Any) -> str:
    """A value as one would type it, texts in quotes."""
    if isinstance(value, list):
        return f"[{','.join(str(each) for each in value)}]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return repr(value)


def describe_unknown(name: str, known: list[str]) -> str:
    """Name the nearest setting there is, or those beside it when none is near."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if near:
        return f"there is no setting '{name}'; did you mean '{near[0]}'?"
    parent = name.rpartition(".")[0]
    beside = [each for each in known if each.rpartition(".")[0] == parent]
    return f"there is no setting '{name}'; there are {', '.join(beside)}".removesuffix(
        "; there are "
    )


def require_text(name: str, value: Any) -> str:
    """A setting that may be left empty, but must be text when it is given."""
    if not isinstance(value, str):
        raise ValueError(describe_type(name, value, ""))
    return value
