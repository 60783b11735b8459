"""Which questions are asked, and that they need the picture."""

from collections import Counter, defaultdict

import numpy as np
import pytest

from data.shapes.annotators import answer
from data.shapes.balance import QUESTIONS_PER_SCENE, draw_asked_scenes
from data.shapes.questions import TEMPLATES, Question
from data.shapes.scene import Scene

Asked = list[tuple[Scene, list[Question]]]


@pytest.fixture(scope="module")
def asked() -> Asked:
    """Half as many scenes as one worker draws for train."""
    return draw_asked_scenes(np.random.default_rng(0), 500)


def list_questions(asked: Asked) -> list[Question]:
    """All questions in order."""
    return [question for _, questions in asked for question in questions]


def test_every_scene_has_the_same_number_of_different_questions(asked: Asked) -> None:
    for _, questions in asked:
        assert len({question.text for question in questions}) == QUESTIONS_PER_SCENE


def test_twins_are_asked_the_same_and_answer_differently(asked: Asked) -> None:
    for (_, one), (_, other) in zip(asked[::2], asked[1::2], strict=True):
        assert [question.text for question in one] == [question.text for question in other]
        assert all(a.answer != b.answer for a, b in zip(one, other, strict=True))


def test_all_templates_types_and_answers_occur(asked: Asked) -> None:
    questions = list_questions(asked)
    assert {question.template for question in questions} == set(TEMPLATES)
    assert len(TEMPLATES) >= 8
    assert {template.answer_type for template in TEMPLATES.values()} == {
        "yes/no",
        "number",
        "other",
    }
    frequent = [a for a, n in Counter(q.answer for q in questions).items() if n > 8]
    assert len(frequent) >= 30
    assert {str(number) for number in range(6)} <= set(frequent)


def test_a_third_of_the_questions_rests_on_several_objects_far_apart(asked: Asked) -> None:
    far = [
        scene.are_far_apart(question.things) for scene, questions in asked for question in questions
    ]
    assert np.mean(far) > 1 / 3


def test_the_question_string_alone_tells_little_and_nothing_between_yes_and_no(
    asked: Asked,
) -> None:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for question in list_questions(asked):
        counts[question.text][question.answer] += 1
    assert all(count["yes"] == count["no"] for count in counts.values())
    assert any(count["yes"] for count in counts.values())
    right = sum(max(count.values()) for count in counts.values())
    assert right / len(list_questions(asked)) < 0.45


def test_annotators_disagree_sometimes_and_the_majority_is_always_right(asked: Asked) -> None:
    generator = np.random.default_rng(1)
    disagreements = 0
    for question in list_questions(asked)[:2000]:
        given = Counter(entry["answer"] for entry in answer(generator, question))
        assert given.total() == 10
        assert given[question.answer] >= 6
        disagreements += len(given) > 1
    assert 0.2 < disagreements / 2000 < 0.8
