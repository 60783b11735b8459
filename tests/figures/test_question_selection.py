"""Which questions are shown: at random, where models differ, where one of them fails."""

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from figures.attention_samples import AttentionSample
from figures.question_selection import draw_rows, mean_divergence, rank_differing, rank_failures
from mcan.evaluation.single_question import Prediction


def make_sample(number, cells, answer="yes", probability=0.5):
    cells = np.array([cells], dtype=float)
    return AttentionSample(number, Prediction(answer, probability), cells, None)


def test_random_questions_depend_on_the_seed_alone_and_are_of_different_images():
    image_ids = np.repeat(np.arange(40), 5)
    first, again, other = (draw_rows(image_ids, 30, seed) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert len(np.unique(image_ids[first])) == 30
    assert len(np.unique(draw_rows(image_ids, 200, 3))) == 200
    assert np.array_equal(draw_rows(image_ids, 60, 1)[:30], first)


def test_questions_where_models_differ_most_come_first():
    near, far = [[0.5, 0.5], [0.5, 0.5], [0.4, 0.6]], [[1, 0], [0, 1], [0.5, 0.5]]
    samples = [
        [make_sample(1, near[m]), make_sample(2, far[m]), make_sample(3, [0.5, 0.5])]
        for m in range(3)
    ]
    assert rank_differing(samples).tolist() == [1, 0, 2]
    pairs = [(far[0], far[1]), (far[0], far[2]), (far[1], far[2])]
    expected = np.mean([jensenshannon(*pair, base=2) ** 2 for pair in pairs])
    assert mean_divergence([each[1] for each in samples]) == pytest.approx(expected)


def test_failures_are_questions_that_one_model_gets_wrong_and_another_right(split):
    ids = split.questions.ids[:4].tolist()
    right = [split.annotations[n].multiple_choice_answer for n in ids]
    cells = [0.5, 0.5]
    good = [make_sample(n, cells, answer) for n, answer in zip(ids, right, strict=True)]
    bad = [
        make_sample(ids[0], cells, right[0]),
        make_sample(ids[1], cells, "no such answer", 0.3),
        make_sample(ids[2], cells, "no such answer", 0.9),
        make_sample(ids[3], cells, right[3]),
    ]
    assert rank_failures(split, [good, bad], failing=1).tolist() == [2, 1]
    assert rank_failures(split, [good, bad], failing=0).tolist() == []
