import json
import random
from collections import Counter

import pytest

from data.accuracy import score_answer
from data.answers import AnswerList
from data.questions import Annotation, load_annotations
from data.splits import Folder
from data.vocabulary import Vocabulary
from tests.data.official_files import real_folder


def annotate(choice="yes", answers=("yes",) * 10, question_id=1):
    return Annotation(question_id, 1, "what is", "other", choice, tuple(answers))


def test_only_answers_that_occur_more_than_eight_times_are_listed():
    annotations = [annotate("rare")] * 8 + [annotate("common")] * 9
    assert AnswerList.build(annotations).words == ("common",)
    assert AnswerList.build(annotations, more_than=7).words == ("common", "rare")


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
    with pytest.raises(ValueError, match="none of the 1 answers occurs more than 8 times"):
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


def test_saving_and_loading_gives_the_same_list(tmp_path):
    answers = AnswerList(["yes", "", "café"])
    answers.save(tmp_path / "answers.json")
    loaded = AnswerList.load(tmp_path / "answers.json")
    assert loaded.words == answers.words
    assert loaded.index == {"yes": 0, "": 1, "café": 2}
    assert loaded.fingerprint == answers.fingerprint != AnswerList(["", "yes", "café"]).fingerprint
    assert len(loaded) == 3


def test_a_tampered_list_is_refused_by_name(tmp_path):
    path = tmp_path / "answers.json"
    state = AnswerList(["yes", "no"]).state()
    path.write_text(json.dumps(state | {"words": ["no", "yes"]}))
    with pytest.raises(ValueError, match=r"answers\.json was changed after it was built"):
        AnswerList.load(path)


def test_a_vocabulary_is_no_answer_list(tmp_path):
    Vocabulary.build(["a b"]).save(tmp_path / "vocabulary.json")
    with pytest.raises(ValueError, match="holds no answer list"):
        AnswerList.load(tmp_path / "vocabulary.json")


def test_a_checkpoint_with_another_list_is_refused():
    answers = AnswerList(["yes", "no"])
    answers.refuse_other(answers.fingerprint, "last.pt", "answers.json")
    with pytest.raises(ValueError, match=r"last\.pt was made with another answer list"):
        answers.refuse_other(AnswerList(["no", "yes"]).fingerprint, "last.pt", "answers.json")


def test_lists_that_no_model_can_use_are_refused():
    with pytest.raises(ValueError, match="empty"):
        AnswerList([])
    with pytest.raises(ValueError, match="'yes' twice"):
        AnswerList(["yes", "yes"])


@pytest.mark.real
def test_real_answers_reach_the_list():
    annotations = load_annotations(Folder(real_folder()).annotation_files("train+val"))
    answers = AnswerList.build(annotations)
    assert {"yes", "no", "white"} <= set(answers.words)
    everything = AnswerList.build(annotations, more_than=0)
    unscored = Counter(not everything.soft_scores(annotation)[0] for annotation in annotations)
    assert unscored[True] == 0
