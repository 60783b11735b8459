"""Arbitrary JSON, and valid JSON in which one value is another than expected."""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

KEYS = ["questions", "annotations", "question_id", "answers", "answer", "words", "format", "optim"]
SCALARS: list[Any] = [
    None, True, False, 0, -1, 3, 2**31, 2**63, 2**70, 0.5, -0.0, 1e308, float("inf"), float("nan"),
    "", "x", "yes", "é東", "\ud800", "\0", "1", "x" * 5000,
]  # fmt: skip
DEEPEST = 4


def draw_value(chance: random.Random, depth: int = 0) -> Any:
    """A scalar, a list or an object with keys that readers look for."""
    kind = chance.random() if depth < DEEPEST else 0.0
    if kind < 0.6:
        return chance.choice(SCALARS)
    values = [draw_value(chance, depth + 1) for _ in range(chance.randint(0, 4))]
    return values if kind < 0.8 else dict(zip(chance.sample(KEYS, 4), values, strict=False))


def draw_json(chance: random.Random) -> bytes:
    """Any JSON as the bytes of a file."""
    return json.dumps(draw_value(chance)).encode()


def change_json(chance: random.Random, content: bytes) -> bytes:
    """A valid file with one value replaced or removed, wherever it is."""
    value = json.loads(content)
    place = chance.choice(list(list_places(value)))
    changed = change_value(value, place, draw_value(chance), remove=chance.random() < 0.3)
    return json.dumps(changed).encode()


def list_places(content: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of keys to every value, up to three entries of each list."""
    yield place
    if isinstance(content, dict):
        for key in content:
            yield from list_places(content[key], (*place, key))
    elif isinstance(content, list):
        for number in range(min(3, len(content))):
            yield from list_places(content[number], (*place, number))


def change_value(content: Any, place: tuple[Any, ...], value: Any, remove: bool = False) -> Any:
    """A copy with another value at a place, or without what is there."""
    if not place:
        return value
    changed = copy.copy(content)
    if len(place) > 1:
        changed[place[0]] = change_value(content[place[0]], place[1:], value, remove)
    elif remove:
        del changed[place[0]]
    else:
        changed[place[0]] = value
    return changed
