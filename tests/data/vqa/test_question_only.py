"""Guesses from the question alone."""

from data.vqa.question_only import guess_by_text, score_answers
from data.vqa.questions import Annotation


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
        annotate(13, "why", "cat"),
    ]
    guesses = guess_by_text(TRAIN, TEXTS, asked, ["What is this?", "What is new?", "Why?"])
    assert guesses == ["cup", "cat", "cat"]
    assert score_answers(asked, guesses).overall == 66.67


def test_equally_frequent_answers_are_ordered_by_the_alphabet():
    asked = [annotate(14, "how many", "3")]
    assert guess_by_text(TRAIN, TEXTS, asked, ["How many?"]) == ["2"]
