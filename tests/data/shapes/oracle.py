"""Answers read off a scene's description by other code: a second source for the templates."""

import re
from collections import Counter
from typing import Any


def derive(question: str, scene: dict[str, Any]) -> str:
    """The answer to a question about a scene of shapes_metadata.json; ambiguity fails."""
    words = re.sub(r"[?]", "", question).split()
    objects = scene["objects"]

    def matching(*kinds: str) -> list[dict[str, Any]]:
        return [o for o in objects if all(k in (o["shape"], o["color"]) for k in kinds)]

    def only(found: list[dict[str, Any]]) -> dict[str, Any]:
        assert len(found) == 1, question
        return found[0]

    match words:
        case ["Is", "there", _, color, shape]:
            return "yes" if matching(color, shape) else "no"
        case ["Is", "there", "a" | "anything", kind]:
            return "yes" if matching(kind) else "no"
        case ["Are", "there", "both", one, "and", other, *_]:
            pair = [matching(kind) for kind in (one, other)]
            return "yes" if all(pair) else "no"
        case ["Which", "are", "there,", one, "or", other, *_]:
            present = [kind for kind in (one, other) if matching(kind)]
            return present[0] if len(present) == 1 else "both" if present else "neither"
        case ["How", "many", kind, "objects" | "shapes", "are", "there"]:
            return str(len(matching(kind)))
        case ["Is", "the", shape, "big", "or", "small"]:
            return "big" if only(matching(shape))["big"] else "small"
        case ["What", "color", "is", "the", "background"]:
            return str(scene["background"])
        case ["What", attribute, "is", "the", "big", "object"]:
            return str(only([o for o in objects if o["big"]])[attribute])
        case ["What", "color", "is", "the", shape]:
            return str(only(matching(shape))["color"])
        case ["What", "shape", "is", "the", color, "object"]:
            return str(only(matching(color))["shape"])
        case ["Are", "there", "more", one, "or", other, *_]:
            numbers = [len(matching(kind)) for kind in (one, other)]
            return (
                "equal" if numbers[0] == numbers[1] else one if numbers[0] > numbers[1] else other
            )
        case ["What", "is", "the", "most", "common", attribute, *_]:
            (first, most), *rest = Counter(o[attribute] for o in objects).most_common(2)
            assert not rest or most > rest[0][1], question
            return str(first)
    raise AssertionError(f"no rule for {question}")
