"""Result files: one JSON array of {"question_id": int, "answer": str}."""

import json
from array import array
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from data.entries import name_ids, refuse_duplicates, take_id, take_text
from data.files import read_json
from data.json_array import iterate_array
from data.splits import question_subtype, split_names

KEYS = {"question_id", "answer"}


def result_name(split: str, run: str) -> str:
    """The official name of a result file: vqa_OpenEnded_mscoco_test2015_<run>_results.json."""
    subtype = "+".join(question_subtype(name) for name in split_names(split))
    return f"vqa_OpenEnded_mscoco_{subtype}_{run}_results.json"


def write_results(path: str | Path, question_ids: Iterable[int], answers: Iterable[str]) -> None:
    """Write one JSON array, entry by entry, so that no more than one is in memory."""
    with open(path, "w", encoding="ascii") as file:
        separator = "[\n"
        for number, answer in zip(question_ids, answers, strict=True):
            file.write(separator + json.dumps({"question_id": number, "answer": answer}))
            separator = ",\n"
        file.write("[]\n" if separator == "[\n" else "\n]\n")


def check_results(
    path: str | Path, question_ids: np.ndarray, answers: Collection[str], source: str | Path
) -> None:
    """Raise unless a file answers every question (Q,) of `source` once, from the list of answers.

    It is read entry by entry, as the server would: integer ids, plain strings, one JSON array.
    """
    ids = array("q")
    for number, entry in enumerate(iterate_array(path), 1):
        where = f"{path}: result number {number}"
        ids.append(take_id(entry, "question_id", where))
        answer = take_text(entry, "answer", where)
        if answer not in answers:
            raise ValueError(f"{where}: '{answer:.60}' is not in the answer list")
        if entry.keys() != KEYS:
            raise ValueError(f"{where} has more than a question_id and an answer")
    given, wanted = np.sort(np.array(ids, dtype=np.int64)), np.sort(question_ids)
    if not np.array_equal(given, wanted):
        refuse_duplicates(ids, [path])
        check_ids(given.tolist(), wanted.tolist(), f"{path}, the answers to {source}")


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
