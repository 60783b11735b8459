"""Guesses from the question alone."""

import json
from pathlib import Path

import numpy as np

from data.vqa.data_folder import DataFolder
from data.vqa.question_only import guess_by_text, score_answers, score_question_only
from data.vqa.questions import Annotation
from tests.data.vqa.official_files import make_annotation, make_question


def annotate(question_id: int, question_type: str, answer: str) -> Annotation:
    return Annotation(question_id, 1, question_type, "other", answer, (answer,) * 10)


TRAIN = [
    annotate(1, "what is", "cup"),
    annotate(2, "what is", "cat"),
    annotate(3, "what is", "cat"),
    annotate(4, "how many", "2"),
    annotate(5, "how many", "3"),
    annotate(6, "is there", "cat"),
]
TEXTS = ["What is this?", "What is that?", "What is it?", "How many?", "How many?", "Is there?"]


def test_the_very_words_come_first_then_the_type_then_the_most_frequent_of_all():
    asked = [
        annotate(11, "what is", "cup"),
        annotate(12, "what is", "dog"),
        annotate(13, "how many", "2"),
        annotate(14, "why", "cat"),
    ]
    texts = ["What is this?", "What is new?", "How many are new?", "Why?"]
    guesses = guess_by_text(TRAIN, TEXTS, asked, texts)
    assert guesses == ["cup", "cat", "2", "cat"]
    assert score_answers(asked, guesses).overall == 75.0


def test_only_the_questions_that_are_asked_for_are_scored(tmp_path: Path) -> None:
    """By hand: "a?" is answered "cup", which is right in one of two, and "b?" "cat", which is."""
    folder = DataFolder(tmp_path)
    rows = {
        "train": [("a?", "cup"), ("b?", "cat"), ("b?", "cat")],
        "val": [("a?", "cup"), ("a?", "dog"), ("b?", "cat")],
    }
    for split, found in rows.items():
        questions = [make_question(number, text) for number, (text, _) in enumerate(found)]
        annotations = [
            make_annotation(number, [answer] * 10, answer)
            for number, (_, answer) in enumerate(found)
        ]
        folder.questions(split).write_text(json.dumps({"questions": questions}))
        folder.annotations(split).write_text(json.dumps({"annotations": annotations}))
    assert score_question_only(folder, "train", "val").overall == 66.67
    some = score_question_only(folder, "train", "val", np.array([1, 2]))
    assert some.per_question == {1: 0.0, 2: 100.0}
    assert some.overall == 50.0


def test_equally_frequent_answers_are_ordered_by_the_alphabet():
    asked = [annotate(14, "how many", "3")]
    assert guess_by_text(TRAIN, TEXTS, asked, ["How many?"]) == ["2"]
