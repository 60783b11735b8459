"""Result files: one JSON array of {"question_id": int, "answer": str}."""

import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from data.io.atomic_files import read_json
from data.vqa.json_entries import check_unique, name_ids, take_id, take_text
from data.vqa.layout import VQA_V2, Layout

KEYS = {"question_id", "answer"}


def result_name(split: str, run: str, layout: Layout = VQA_V2) -> str:
    """The official name of a result file: vqa_OpenEnded_mscoco_test2015_<run>_results.json."""
    subtype = "+".join(layout.question_subtype(name) for name in layout.split_names(split))
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
    """Raise unless a file answers every question (Q,) of `source` once, by listed answers."""
    entries = read_array(path)
    results = parse_results(entries, path)
    for number, entry in enumerate(entries, 1):
        if entry["answer"] not in answers:
            raise ValueError(
                f"{path}: result number {number}: '{entry['answer']:.60}' is not in the answer list"
            )
        if entry.keys() != KEYS:
            raise ValueError(
                f"{path}: result number {number} has more than a question_id and an answer"
            )
    check_ids(results, question_ids.tolist(), f"{path}, the answers to {source}")


def load_results(path: str | Path) -> dict[int, str]:
    """The answer to each question id; raises on anything the VQA server would misread."""
    return parse_results(read_array(path), path)


def read_array(path: str | Path) -> list[Any]:
    """The one JSON array that a file must hold."""
    expected = 'expected one JSON array of {"question_id": int, "answer": str}'
    try:
        entries = read_json(path)
    except ValueError as error:
        if "Extra data" in str(error):
            raise ValueError(
                f"{path} holds several JSON values, as JSON Lines do; {expected}"
            ) from None
        raise
    if not isinstance(entries, list):
        raise ValueError(f"{path} holds a JSON {type(entries).__name__}; {expected}")
    return entries


def parse_results(entries: list[Any], path: str | Path) -> dict[int, str]:
    """The answer to each question id, every entry checked."""
    wrong = [
        entry.get("question_id")
        for entry in entries
        if isinstance(entry, dict) and not isinstance(entry.get("answer", ""), str)
    ]
    if wrong:
        raise ValueError(
            f"{path}: {len(wrong)} answers are not strings (questions {name_ids(wrong)}); "
            'write "2", not 2'
        )
    pairs = []
    for number, entry in enumerate(entries, 1):
        where = f"{path}: result number {number}"
        pairs.append((take_id(entry, "question_id", where), take_text(entry, "answer", where)))
    check_unique([question_id for question_id, _ in pairs], [path])
    return dict(pairs)


def check_ids(results: Collection[int], expected: Collection[int], source: str | Path) -> None:
    """Raise unless the results answer exactly the expected question ids."""
    given, wanted = set(results), set(expected)
    parts = [
        f"{len(ids)} {what} ({name_ids(sorted(ids))})"
        for ids, what in (
            (wanted - given, f"of {len(wanted)} questions are missing"),
            (given - wanted, "ids are not in the question file"),
        )
        if ids
    ]
    if parts:
        raise ValueError(f"{source}: {' and '.join(parts)}; answer every question exactly once")
