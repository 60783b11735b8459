import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.reference.plain_accuracy import percent, score_file, score_question
from data.vqa import normalisation
from data.vqa.accuracy import score_answer, score_results
from data.vqa.questions import Annotation, load_annotations, load_questions
from data.vqa.results import check_ids, load_results
from tests.data.vqa.official_files import write_annotations, write_questions

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/vqa_accuracy.json").read_text())


@pytest.fixture
def golden_scores(tmp_path):
    questions = load_questions([write_questions(tmp_path / "q.json", GOLDEN["questions"])])
    annotations = load_annotations([write_annotations(tmp_path / "a.json", GOLDEN["annotations"])])
    (tmp_path / "r.json").write_text(json.dumps(GOLDEN["results"]))
    results = load_results(tmp_path / "r.json")
    check_ids(results, questions.ids.tolist(), "r.json")
    return score_results(annotations, results)


def test_golden_questions_and_averages_have_their_official_scores_to_the_last_digit(golden_scores):
    scores, expected = golden_scores.to_json(), GOLDEN["expected"]
    assert scores["perQuestion"] == expected["per_question"]
    assert {key: scores[key] for key in expected["accuracy"]} == expected["accuracy"]
    assert scores == score_file(GOLDEN["annotations"], GOLDEN["results"])  # a plain transcription


def test_groups_hold_every_question_once(golden_scores):
    assert sum(golden_scores.num_per_answer_type.values()) == len(GOLDEN["questions"])
    assert sum(golden_scores.num_per_question_type.values()) == len(GOLDEN["questions"])


WORDS = ["yes", "Yes", " yes\n", "two", "2", "a dog", "dog", "1,0", "t-shirt", "t shirt", "st.", ""]


@given(
    st.one_of(st.text(max_size=8), st.sampled_from(WORDS)),
    st.lists(st.one_of(st.text(max_size=3), st.sampled_from(WORDS)), min_size=10, max_size=10),
)
def test_the_fast_score_is_the_plain_score(prediction, answers):
    assert score_answer(prediction, tuple(answers)) == score_question(prediction, answers)


@given(st.sampled_from(WORDS), st.sampled_from(WORDS), st.integers(0, 10), st.randoms())
def test_the_order_of_people_changes_a_score_by_rounding_only(word, other, count, generator):
    answers = [word] * count + [other] * (10 - count)
    shuffled = generator.sample(answers, 10)
    score = score_answer(word, tuple(shuffled))
    assert score == score_question(word, shuffled)
    assert score == pytest.approx(score_answer(word, tuple(answers)))


@pytest.mark.parametrize(("count", "score"), [(0, 0), (1, 0.3), (2, 0.6), (3, 0.9), (4, 1)])
def test_scores_by_the_number_of_people_who_agree(count, score):
    answers = ["red"] * count + [f"color {number}" for number in range(10 - count)]
    assert score_answer("red", tuple(answers)) == pytest.approx(score)


def test_answers_are_normalised_only_when_people_disagree():
    assert score_answer("1", ("one",) * 10) == 0
    assert score_answer("one", ("one",) * 10) == 1
    assert score_answer("1", ("one",) * 9 + ("two",)) == 1
    # whitespace alone is not a disagreement
    assert score_answer("1", ("one",) * 9 + (" one\n",)) == 0


def test_ties_of_averages_round_as_the_official_sums_do():
    generator = random.Random(3)
    num_surprising = 0
    for _ in range(150):
        tens = [tuple(generator.choices(["yes", "no", "so"], [2, 4, 4], k=10)) for _ in range(16)]
        annotations = [
            Annotation(row, 1, "is", "other", "yes", ten) for row, ten in enumerate(tens)
        ]
        overall = score_results(annotations, dict.fromkeys(range(16), "yes")).overall
        plain = [score_question("yes", list(ten)) for ten in tens]
        assert overall == percent(plain)
        tenths = sum(min(3 * ten.count("yes"), 10) for ten in tens)
        num_surprising += overall != round(100 * tenths / (10 * 16), 2)
    assert num_surprising > 0  # the cases reach ties that exact sums would round the other way


def test_scoring_nothing_is_an_error():
    with pytest.raises(ValueError, match="no annotated questions"):
        score_results([], {})


def test_an_answer_is_normalised_once_however_often_it_was_given(monkeypatch):
    generator = random.Random(0)
    words = [f"the {number}, answer-{number}." for number in range(300)]
    annotations = [
        Annotation(number, 1, "is", "other", "", tuple(generator.choices(words, k=10)))
        for number in range(2000)
    ]
    results = {number: generator.choice(words) for number in range(2000)}
    stripped = []
    original = normalisation.strip_punctuation
    monkeypatch.setattr(
        normalisation, "strip_punctuation", lambda text: stripped.append(text) or original(text)
    )
    score_results(annotations, results)
    assert set(stripped) <= set(words)
    assert len(stripped) == len(set(stripped)) > 200
