"""The official question and annotation files."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from data.entries import name_ids, read_entries, refuse_duplicates, take_id, take_text

NUM_ANNOTATORS = 10


@dataclass(frozen=True)
class Questions:
    """The questions of one or several files, in file order."""

    ids: np.ndarray  # (Q,) int64
    image_ids: np.ndarray  # (Q,) int64
    texts: list[str]
    subtype: str  # "val2014"; "train2014+val2014" for two files

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True, slots=True)
class Annotation:
    """What ten people answered to one question."""

    question_id: int
    image_id: int
    question_type: str
    answer_type: str
    multiple_choice_answer: str
    answers: tuple[str, ...]  # ten


def load_questions(paths: Sequence[str | Path]) -> Questions:
    """Read question files as one list; an id may occur once over all of them."""
    ids: list[int] = []
    image_ids: list[int] = []
    texts: list[str] = []
    subtypes: list[str] = []
    for path in paths:
        entries, subtype = read_entries(path, "questions")
        subtypes.append(subtype)
        for number, entry in enumerate(entries):
            where = f"{path}: question number {number + 1}"
            ids.append(take_id(entry, "question_id", where))
            image_ids.append(take_id(entry, "image_id", where))
            texts.append(take_text(entry, "question", where))
    refuse_duplicates(ids, paths)
    return Questions(
        np.array(ids, dtype=np.int64),
        np.array(image_ids, dtype=np.int64),
        texts,
        "+".join(subtypes),
    )


def load_annotations(paths: Sequence[str | Path]) -> list[Annotation]:
    """Read annotation files as one list; a question id may occur once over all of them."""
    annotations: list[Annotation] = []
    known: dict[str, str] = {}  # equal answers share one string: most are among a few thousand

    def keep_answer(entry: dict[str, Any]) -> Any:
        # Ten small dicts a question are most of the file: keeping only their texts while parsing
        # halves time and memory. What is no proper answer stays as it is, for parse_annotation.
        answer = entry.get("answer")
        if type(answer) is str and "question_id" not in entry and "answers" not in entry:
            return known.setdefault(answer, answer)
        return entry

    for path in paths:
        entries, _ = read_entries(path, "annotations", keep_answer)
        annotations += [
            parse_annotation(entry, path, number) for number, entry in enumerate(entries, 1)
        ]
    refuse_duplicates([annotation.question_id for annotation in annotations], paths)
    return annotations


def parse_annotation(entry: Any, path: str | Path, number: int) -> Annotation:
    """One entry of an annotation file, checked; its answers are texts already."""
    where = f"{path}: annotation number {number}"
    question_id = take_id(entry, "question_id", where)
    where = f"{where} (question {question_id})"
    if "answers" not in entry:
        raise ValueError(f"{where} has no 'answers'")
    answers = entry["answers"]
    if not isinstance(answers, list) or len(answers) != NUM_ANNOTATORS:
        found = f"{len(answers)}" if isinstance(answers, list) else "no list"
        raise ValueError(f"{where} must have {NUM_ANNOTATORS} answers, found {found}")
    for answer in answers:
        if type(answer) is not str:
            take_text(answer, "answer", f"{where}: an answer")
    return Annotation(
        question_id,
        take_id(entry, "image_id", where),
        sys.intern(take_text(entry, "question_type", where)),
        sys.intern(take_text(entry, "answer_type", where)),
        take_text(entry, "multiple_choice_answer", where),
        tuple(answers),
    )


def match_annotations(questions: Questions, annotations: Iterable[Annotation]) -> list[Annotation]:
    """The annotations in the order of the questions; each must have the other, and one image."""
    by_id = {annotation.question_id: annotation for annotation in annotations}
    ids = questions.ids.tolist()
    asked = set(ids)
    refuse_unpaired([number for number in by_id if number not in asked], "annotations", "question")
    refuse_unpaired([number for number in ids if number not in by_id], "questions", "annotation")
    matched = [by_id[number] for number in ids]
    for annotation, image_id in zip(matched, questions.image_ids.tolist(), strict=True):
        if annotation.image_id != image_id:
            raise ValueError(
                f"question {annotation.question_id} is about image {image_id}, its annotation "
                f"about image {annotation.image_id}; the two files must belong together"
            )
    return matched


def refuse_unpaired(ids: list[int], what: str, partner: str) -> None:
    """Raise when there are annotations without a question, or questions without an annotation."""
    if ids:
        raise ValueError(
            f"{len(ids)} {what} have no {partner} ({name_ids(ids)}); the question file and the "
            "annotation file must belong to the same split"
        )
