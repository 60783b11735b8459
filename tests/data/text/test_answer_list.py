import random
from collections import Counter

import pytest

from data.text.answer_list import AnswerList
from data.vqa.accuracy import score_answer
from data.vqa.data_folder import DataFolder
from data.vqa.questions import Annotation, load_annotations
from tests.data.vqa.official_files import real_folder


def annotate(choice="yes", answers=("yes",) * 10, question_id=1):
    return Annotation(question_id, 1, "what is", "other", choice, tuple(answers))


@pytest.mark.parametrize(
    ("counts", "min_count", "words"),
    [
        ({"rare": 8, "common": 9}, 9, ("common",)),
        ({"rare": 8, "common": 9}, 8, ("common", "rare")),
        ({"Two": 3, "the 2": 3, "2.": 3}, 9, ("2",)),  # spellings of one answer count together
        ({"b": 9, "c": 9, "z": 12, "The": 10}, 9, ("z", "", "b", "c")),
    ],
)
def test_frequent_answers_are_listed_by_frequency_then_alphabet(counts, min_count, words):
    annotations = [annotate(choice) for choice, count in counts.items() for _ in range(count)]
    assert AnswerList.build(annotations, min_count).words == words
    assert AnswerList.build(annotations[::-1], min_count).words == words


def test_an_answer_is_listed_from_nine_times_on_unless_told_otherwise():
    assert AnswerList.build([annotate("rare")] * 8 + [annotate()] * 9).words == ("yes",)


def test_too_few_annotations_are_a_clear_error():
    with pytest.raises(ValueError, match="none of the 1 answers occurs 9 times"):
        AnswerList.build([annotate()] * 8)


@pytest.mark.parametrize(
    ("count", "score"), [(1, 0.3), (2, 0.6), (3, 0.9), (4, 1.0), (7, 1.0), (10, 1.0)]
)
def test_soft_scores_by_the_number_of_people(count, score):
    answers = AnswerList(["no", "yes"])
    others = [f"other {number}" for number in range(10 - count)]
    assert answers.soft_scores(annotate(answers=["Yes."] * count + others)) == ([1], [score])


def test_soft_scores_are_in_ascending_order_of_the_list_and_skip_the_rest():
    answers = AnswerList(["2", "dog", "yes"])
    ten = ["yes"] * 3 + ["two"] + ["2"] + ["a dog"] + ["cat"] * 4
    assert answers.soft_scores(annotate(answers=ten)) == ([0, 1, 2], [0.6, 0.3, 0.9])


def test_soft_scores_are_the_official_accuracy_where_people_disagree():
    generator = random.Random(1)
    words = ["yes", "no", "2", "t-shirt", "don't"]
    answers = AnswerList(sorted({"yes", "no", "2", "t shirt", "don't"}))
    for _ in range(200):
        ten = ["other", *generator.choices(words, k=9)]
        indices, scores = answers.soft_scores(annotate(answers=ten))
        for index, score in zip(indices, scores, strict=True):
            assert score_answer(answers.words[index], tuple(ten)) == pytest.approx(score)


def test_an_empty_list_is_rejected():
    with pytest.raises(ValueError, match="empty"):
        AnswerList([])


@pytest.mark.real
def test_real_answers_reach_the_list():
    annotations = load_annotations(DataFolder(real_folder()).annotation_files("train+val"))
    answers = AnswerList.build(annotations)
    assert {"yes", "no", "white"} <= set(answers.words)
    everything = AnswerList.build(annotations, min_count=1)
    unscored = Counter(not everything.soft_scores(annotation)[0] for annotation in annotations)
    assert unscored[True] == 0
