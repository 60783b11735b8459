"""From the composed config of a command to its typed settings; what does not fit is named."""

import dataclasses
import difflib
import math
import operator
import re
from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from configs.schema.kinds import Required

Schema = TypeVar("Schema")

# fields that are not settings: the whole config as plain values, and what differs from its files
COMPOSED, CHANGES = "composed", "changes"
TRAINING_ALONE = ("runtime.limit_batches", "runtime.profile")  # of configs/train.yaml
MISSING = ("???", "", None)  # a required setting that was not given
LIMIT = re.compile(r"([<>]=?) (\d+)(?:\^(\d+))?")  # one part of ">= 0 and < 2^63"
COMPARE = {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt}
KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
EXAMPLES = {bool: "true,false", int: "1,2", float: "0.1,0.2", str: "a,b"}


def read_settings(schema: type[Schema], values: Mapping[str, Any], command: str) -> Schema:
    """The settings of a command; ValueError names the first key that is missing or wrong."""
    kinds = list_kinds(schema)
    required = [name for name, kind in kinds.items() if kind == Required]
    absent = [name for name in required if values.get(name) in MISSING]
    if absent:
        raise ValueError(f"{command} needs {' '.join(f'{name}=…' for name in absent)}")
    settings = read_group(schema, values, "")
    if COMPOSED in get_type_hints(schema):
        settings = dataclasses.replace(settings, composed=dict(values))  # type: ignore[type-var]
    return settings


def list_kinds(schema: Any) -> dict[str, Any]:
    """The keys of a group and what each must be."""
    hints = get_type_hints(schema, include_extras=True)
    return {
        field.name: hints[field.name]
        for field in dataclasses.fields(schema)
        if field.name not in (COMPOSED, CHANGES)
    }


def read_group(schema: type[Schema], values: Mapping[str, Any], prefix: str) -> Schema:
    """A group of settings; `prefix` is its dotted name and a dot."""
    kinds = list_kinds(schema)
    for key in values:
        if key not in kinds:
            raise ValueError(describe_unknown(f"{prefix}{key}", [f"{prefix}{k}" for k in kinds]))
    given = {
        name: read_value(f"{prefix}{name}", value, kinds[name]) for name, value in values.items()
    }
    fields, none = dataclasses.fields(schema), dataclasses.MISSING  # type: ignore[arg-type]
    needed = [field.name for field in fields if field.default is field.default_factory is none]
    absent = [f"{prefix}{name}" for name in needed if name not in values]
    if absent:  # from a user's file
        raise ValueError(f"the config lacks {', '.join(absent)}")
    try:
        return schema(**given)
    except ValueError as error:  # of __post_init__, whose sentences begin with a field's name
        raise ValueError(f"{prefix}{error}") from None


def read_value(name: str, value: Any, kind: Any) -> Any:
    """A setting as its type wants it; ValueError where it is of another one or out of range."""
    if dataclasses.is_dataclass(kind) and isinstance(value, Mapping):
        return read_group(kind, value, f"{name}.")  # type: ignore[arg-type]
    choices = list_choices(kind)
    for choice in choices:
        read, fits = convert(name, value, choice)
        if fits:
            return read
    sentence = f"{name} must be {describe_kind(name, kind)}, not {show(value)}"
    if isinstance(value, int | float) and (str in choices or Required in choices):
        sentence += f"; quote it: \"{name}='{show(value)}'\""
    raise ValueError(sentence)


def list_choices(kind: Any) -> Sequence[Any]:
    """The types of a union, or the one type."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else [kind]


def convert(name: str, value: Any, kind: Any) -> tuple[Any, bool]:
    """The value as one of that type, and whether it is one; nothing is guessed from text."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        value, fits = convert(name, value, inner[0])
        return value, fits and is_within(value, inner[1])
    if origin is Literal:
        return value, value in inner
    if origin is list and isinstance(value, list):
        return [read_item(name, item, inner[0]) for item in value], True
    if origin is tuple and isinstance(value, list) and len(value) == len(inner):
        return tuple(read_item(name, *pair) for pair in zip(value, inner, strict=True)), True
    if origin is dict:
        return value, isinstance(value, dict)
    if kind is float and type(value) is int:
        return float(value), True
    return value, type(value) is kind and (kind is not float or math.isfinite(value))


def read_item(name: str, value: Any, kind: Any) -> Any:
    """An entry of a list."""
    read, fits = convert(name, value, kind)
    if not fits:
        raise ValueError(
            f"every entry of {name} must be {describe_kind(name, kind)}, not {show(value)}"
        )
    return read


def is_within(value: Any, limits: str) -> bool:
    """Whether a number keeps to limits such as ">= 0 and < 1"."""
    return all(
        COMPARE[compare](value, int(base) ** int(power or 1))
        for compare, base, power in LIMIT.findall(limits)
    )


def describe_kind(name: str, kind: Any) -> str:
    """What a type accepts, in words."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return " or ".join(describe_kind(name, each) for each in inner)
    if kind == Required:
        return KINDS[str]
    if origin is Annotated:
        return f"{describe_kind(name, inner[0])} {inner[1]}"
    if origin is Literal:
        return f"one of {', '.join(map(str, inner))}"
    if origin is list:
        entry = get_args(inner[0])[0] if get_origin(inner[0]) is Annotated else inner[0]
        example = ",".join(get_args(entry)) if get_origin(entry) is Literal else EXAMPLES[entry]
        return f"a list such as [{example}]"
    if origin is tuple:
        return f"a list of {len(inner)}, each {describe_kind(name, inner[0])}"
    if origin is dict or dataclasses.is_dataclass(kind):
        first = next(iter(list_kinds(kind))) if dataclasses.is_dataclass(kind) else "key"
        return f"settings such as {name}.{first}=…"
    return "null" if kind is NoneType else KINDS[kind]


def show(value: Any) -> str:
    """A value as one would type it, texts in quotes."""
    if isinstance(value, list):
        return f"[{','.join(str(each) for each in value)}]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return repr(value)


def describe_unknown(name: str, known: list[str]) -> str:
    """Name the settings within it, or the nearest there is, or those beside it if none is near."""
    if name in TRAINING_ALONE:
        return f"{name} is a setting of make train alone"
    within = [each for each in known if each.startswith(f"{name}.")]
    if within:
        return f"there is no setting '{name}'; there are {', '.join(within)}"
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if near:
        return f"there is no setting '{name}'; did you mean '{near[0]}'?"
    parent = name.rpartition(".")[0]
    beside = [each for each in known if each.rpartition(".")[0] == parent]
    return f"there is no setting '{name}'; there are {', '.join(beside)}".removesuffix(
        "; there are "
    )
