"""The official question and annotation files."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from data.vqa.json_entries import check_unique, name_ids, read_entries, take, take_id, take_text

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

    def find(self, ids: Sequence[int]) -> np.ndarray:
        """(n,): the rows of named questions, in the order they are named."""
        places = {number: row for row, number in enumerate(self.ids.tolist())}
        missing = [number for number in ids if number not in places]
        if missing:
            raise ValueError(
                f"the split has no question {name_ids(missing)}; name question ids of this split"
            )
        return np.array([places[number] for number in dict.fromkeys(ids)], dtype=np.int64)

    def take(self, rows: np.ndarray) -> "Questions":
        """The questions of some rows (n,)."""
        texts = [self.texts[row] for row in rows.tolist()]
        return Questions(self.ids[rows], self.image_ids[rows], texts, self.subtype)


@dataclass(frozen=True, slots=True)
class Annotation:
    """What ten people answered to one question; what is only trained on may have other numbers."""

    question_id: int
    image_id: int
    question_type: str
    answer_type: str
    multiple_choice_answer: str
    answers: tuple[str, ...]  # ten


def load_questions(paths: Sequence[str | Path]) -> Questions:
    """Read question files as one list; an id may occur once over all of them."""
    return join_questions([parse_questions(path) for path in paths], paths)


def load_annotations(paths: Sequence[str | Path]) -> list[Annotation]:
    """Read annotation files as one list; a question id may occur once over all of them."""
    return join_annotations([parse_annotations(path) for path in paths], paths)


def parse_questions(path: str | Path) -> Questions:
    """The questions of one file."""
    entries, subtype = read_entries(path, "questions")
    ids = np.empty(len(entries), dtype=np.int64)
    image_ids = np.empty(len(entries), dtype=np.int64)
    texts: list[str] = []
    for row, entry in enumerate(entries):
        where = f"{path}: question number {row + 1}"
        ids[row] = take_id(entry, "question_id", where)
        image_ids[row] = take_id(entry, "image_id", where)
        texts.append(take_text(entry, "question", where))
    return Questions(ids, image_ids, texts, subtype)


def join_questions(parts: Sequence[Questions], paths: Sequence[str | Path]) -> Questions:
    """The questions of several files as one list."""
    ids = np.concatenate([part.ids for part in parts])
    check_unique(ids.tolist(), paths)
    if len(parts) == 1:
        return parts[0]
    return Questions(
        ids,
        np.concatenate([part.image_ids for part in parts]),
        [text for part in parts for text in part.texts],
        "+".join(part.subtype for part in parts),
    )


def parse_annotations(path: str | Path, is_scored: bool = True) -> list[Annotation]:
    """The annotations of one file.

    Results are scored against ten answers that have types; `is_scored=False` needs neither.
    """
    known: dict[str, str] = {}  # equal answers share one string: most are among a few thousand

    def keep_answer(entry: dict[str, Any]) -> Any:
        # Ten small dicts per question are most of the file: keeping only their texts while parsing
        # halves time and memory. What is not a proper answer stays as it is, for parse_annotation.
        answer = entry.get("answer")
        if type(answer) is str and "question_id" not in entry and "answers" not in entry:
            return known.setdefault(answer, answer)
        return entry

    entries, _ = read_entries(path, "annotations", keep_answer)
    return [
        parse_annotation(entry, path, number, is_scored) for number, entry in enumerate(entries, 1)
    ]


def join_annotations(
    parts: Sequence[list[Annotation]], paths: Sequence[str | Path]
) -> list[Annotation]:
    """The annotations of several files as one list."""
    joined = [annotation for part in parts for annotation in part]
    check_unique([annotation.question_id for annotation in joined], paths)
    return joined


def parse_annotation(
    entry: Any, path: str | Path, number: int, is_scored: bool = True
) -> Annotation:
    """One entry of an annotation file, checked; its answers are texts already."""
    where = f"{path}: annotation number {number}"
    question_id = take_id(entry, "question_id", where)
    where = f"{where} (question {question_id})"
    answers = take(entry, "answers", where)
    expected = NUM_ANNOTATORS if is_scored else "some"
    found = len(answers) if isinstance(answers, list) else "no list"
    if not isinstance(answers, list) or (is_scored and found != NUM_ANNOTATORS) or not found:
        repeat = "; repeat it" if found == 1 else ""
        raise ValueError(f"{where} must have {expected} answers, found {found}{repeat}")
    answers = [  # one with more keys than an answer's is still an object
        each if type(each) is str else take_text(each, "answer", f"{where}: an answer")
        for each in answers
    ]
    image_id = take_id(entry, "image_id", where)
    if not is_scored:
        return Annotation(question_id, image_id, "", "", "", tuple(answers))
    return Annotation(
        question_id,
        image_id,
        sys.intern(take_text(entry, "question_type", where)),
        sys.intern(take_text(entry, "answer_type", where)),
        take_text(entry, "multiple_choice_answer", where),
        tuple(answers),
    )


def keep_annotations(
    annotations: Iterable[Annotation] | None, question_ids: np.ndarray
) -> list[Annotation] | None:
    """The annotations of these questions (n,); None where there are none at all."""
    if annotations is None:
        return None
    kept = set(question_ids.tolist())
    return [annotation for annotation in annotations if annotation.question_id in kept]


def match_annotations(questions: Questions, annotations: Iterable[Annotation]) -> list[Annotation]:
    """The annotations in the order of the questions; each must have the other, and one image."""
    by_id = {annotation.question_id: annotation for annotation in annotations}
    ids = questions.ids.tolist()
    asked = set(ids)
    for alone, what, partner in (
        ([number for number in by_id if number not in asked], "annotations", "question"),
        ([number for number in ids if number not in by_id], "questions", "annotation"),
    ):
        if alone:
            raise ValueError(
                f"{len(alone)} {what} have no {partner} ({name_ids(alone)}); the question file and "
                "the annotation file must belong to the same split"
            )
    matched = [by_id[number] for number in ids]
    for annotation, image_id in zip(matched, questions.image_ids.tolist(), strict=True):
        if annotation.image_id != image_id:
            raise ValueError(
                f"question {annotation.question_id} is about image {image_id}, its annotation "
                f"about image {annotation.image_id}; the two files must belong together"
            )
    return matched
