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


def test_only_answers_that_occur_more_than_eight_times_are_listed():
    annotations = [annotate("rare")] * 8 + [annotate("common")] * 9
    assert AnswerList.build(annotations).words == ("common",)
    assert AnswerList.build(annotations, min_count=8).words == ("common", "rare")


def test_spellings_of_one_answer_are_counted_together():
    annotations = [annotate("Two")] * 3 + [annotate("the 2")] * 3 + [annotate("2.")] * 3
    assert AnswerList.build(annotations).words == ("2",)


def test_the_order_is_by_frequency_then_alphabet_whatever_the_order_of_the_file():
    annotations = (
        [annotate("b")] * 9 + [annotate("c")] * 9 + [annotate("z")] * 12 + [annotate("The")] * 10
    )
    expected = ("z", "", "b", "c")
    assert AnswerList.build(annotations).words == expected
    assert AnswerList.build(annotations[::-1]).words == expected


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
