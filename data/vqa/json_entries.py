"""Entries of the official JSON files, checked one by one so that an error names the entry."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from data.io.atomic_files import Simplify, read_json

LARGEST_ID = 2**63 - 1
MOST_NAMED = 5  # ids in one error


def read_entries(path: str | Path, key: str, simplify: Simplify = None) -> tuple[list[Any], str]:
    """The list under `key` of an official file, and the file's data_subtype.

    `simplify` may replace each JSON object while the file is parsed.
    """
    content = read_json(path, simplify)
    if not isinstance(content, dict) or not isinstance(content.get(key), list):
        raise ValueError(f"{path} must be a JSON object with a list under '{key}'")
    subtype = content.get("data_subtype", "")
    if not isinstance(subtype, str):
        raise ValueError(f"{path}: 'data_subtype' must be a string such as \"val2014\"")
    return content[key], subtype


def take(entry: Any, key: str, where: str) -> Any:
    """What an entry has under a key."""
    if not isinstance(entry, dict) or key not in entry:
        raise ValueError(f"{where} has no '{key}'")
    return entry[key]


def take_id(entry: Any, key: str, where: str) -> int:
    """An id of an entry: an integer that 64 bits can hold (JSON's true is not an id)."""
    value = take(entry, key, where)
    if type(value) is not int or not 0 <= value <= LARGEST_ID:
        raise ValueError(f"{where}: '{key}' must be a non-negative integer, not {value!r:.60}")
    return value


def take_text(entry: Any, key: str, where: str) -> str:
    """A text of an entry; JSON may hold half of a character, which no file can hold as text."""
    value = take(entry, key, where)
    if type(value) is not str:
        raise ValueError(f"{where}: '{key}' must be a string, not {value!r:.60}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{where}: '{key}' holds {value[error.start]!r}, which is not valid Unicode; correct it"
        ) from None
    return value


def check_unique(ids: Sequence[int], paths: Sequence[str | Path]) -> None:
    """Raise when a question id occurs twice."""
    if len(set(ids)) == len(ids):
        return
    twice = [number for number, count in Counter(ids).items() if count > 1]
    files = " and ".join(str(path) for path in paths)
    raise ValueError(f"{files}: {len(twice)} question ids occur more than once ({name_ids(twice)})")


def name_ids(ids: Iterable[object]) -> str:
    """The first few ids, for an error."""
    listed = list(ids)
    return ", ".join(map(str, listed[:MOST_NAMED])) + (", …" if len(listed) > MOST_NAMED else "")
