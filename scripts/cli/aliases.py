"""Settings under the names they had before: still accepted, with a notice."""

import os
import re
import sys
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Alias:
    """An old name of a whole number; the new one's value is that much larger."""

    old: str
    new: str
    added: int


ALIASES = (Alias("data.answers_more_than", "data.min_answer_count", added=1),)
noticed: set[str] = set()


def rename_word(word: str) -> str:
    """A word of the command line, key=value or key=value,value, under its new name."""
    key, _, value = word.partition("=")
    for alias in ALIASES:
        if key.lstrip("+") == alias.old:
            if not re.fullmatch(r"-?\d+(,-?\d+)*", value):
                raise ValueError(f"{alias.old} is now {alias.new}, a whole number; give that one")
            values = [str(int(each) + alias.added) for each in value.split(",")]
            notice(alias)
            return f"{key.replace(alias.old, alias.new)}={','.join(values)}"
    return word


def rename_keys(config: dict[str, Any]) -> None:
    """Replace the old names in a config, which a user's YAML may have."""
    for alias in ALIASES:
        *groups, old = alias.old.split(".")
        group: Any = config
        for name in groups:
            group = group.get(name) if isinstance(group, dict) else None
        if isinstance(group, dict) and old in group:
            value = group.pop(old)
            is_number = type(value) is int
            group[alias.new.rpartition(".")[2]] = value + alias.added if is_number else value
            notice(alias)


def notice(alias: Alias) -> None:
    """Say once, on one process, what the setting is called now."""
    if alias.old not in noticed and os.environ.get("RANK", "0") == "0":
        print(
            f"notice: {alias.old} is now {alias.new}, which is {alias.added} more", file=sys.stderr
        )
    noticed.add(alias.old)
