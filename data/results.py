"""Result files: one JSON array of {"question_id": int, "answer": str}."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from data.entries import name_ids, refuse_duplicates, take_id, take_text
from data.files import read_json


def load_results(path: str | Path) -> dict[int, str]:
    """The answer to each question id; refuses anything the VQA server would misread."""
    try:
        entries = read_json(path)
    except ValueError as error:
        if "Extra data" in str(error):
            raise ValueError(
                f"{path} holds several JSON values, as JSON Lines do; expected one JSON array of "
                '{"question_id": int, "answer": str}'
            ) from None
        raise
    if not isinstance(entries, list):
        raise ValueError(
            f"{path} holds a JSON {type(entries).__name__}; expected one JSON array of "
            '{"question_id": int, "answer": str}'
        )
    refuse_non_strings(entries, path)
    ids: list[int] = []
    answers: list[str] = []
    for number, entry in enumerate(entries):
        where = f"{path}: result number {number + 1}"
        ids.append(take_id(entry, "question_id", where))
        answers.append(take_text(entry, "answer", where))
    refuse_duplicates(ids, [path])
    return dict(zip(ids, answers, strict=True))


def refuse_non_strings(entries: list[Any], path: str | Path) -> None:
    """Raise when answers are not strings, naming the first few of their questions."""
    wrong = [
        entry.get("question_id")
        for entry in entries
        if isinstance(entry, dict) and "answer" in entry and not isinstance(entry["answer"], str)
    ]
    if wrong:
        raise ValueError(
            f"{path}: {len(wrong)} answers are not strings (questions {name_ids(wrong)}); "
            'write "2", not 2'
        )


def check_ids(results: Collection[int], expected: Collection[int], source: str | Path) -> None:
    """Raise unless the results answer exactly the expected question ids."""
    given, wanted = set(results), set(expected)
    missing = sorted(wanted - given)
    foreign = sorted(given - wanted)
    parts = []
    if missing:
        parts.append(f"{len(missing)} of {len(wanted)} questions are missing ({name_ids(missing)})")
    if foreign:
        parts.append(f"{len(foreign)} ids are not in the question file ({name_ids(foreign)})")
    if parts:
        raise ValueError(f"{source}: {' and '.join(parts)}; answer every question exactly once")
