"""A setting under the name it had before: still accepted, with a notice."""

import functools
import os
import re
import sys
from typing import Any

GROUP, OLD_KEY, NEW_KEY = "data", "answers_more_than", "min_answer_count"
OLD, NEW = f"{GROUP}.{OLD_KEY}", f"{GROUP}.{NEW_KEY}"  # the new one's value is one more


def rename_word(word: str) -> str:
    """A word of the command line, key=value or key=value,value, under its new name."""
    key, _, value = word.partition("=")
    if key.lstrip("+") != OLD:
        return word
    if not re.fullmatch(r"-?\d+(,-?\d+)*", value):
        raise ValueError(f"{OLD} is now {NEW}, a whole number; give that one")
    notice()
    values = ",".join(str(int(each) + 1) for each in value.split(","))
    return f"{key.replace(OLD, NEW)}={values}"


def rename_keys(config: dict[str, Any]) -> None:
    """Replace the old name in a config, which a user's YAML may have."""
    group = config.get(GROUP)
    if isinstance(group, dict) and OLD_KEY in group:
        value = group.pop(OLD_KEY)
        group[NEW_KEY] = value + 1 if type(value) is int else value
        notice()


@functools.cache
def notice() -> None:
    """Say once, on one process, what the setting is called now."""
    if os.environ.get("RANK", "0") == "0":
        print(f"notice: {OLD} is now {NEW}, which is 1 more", file=sys.stderr)
