"""The λ table and its cross-validation, against plain loops over made-up candidates."""

import math

import numpy as np
import pytest
import torch

from data.vqa.accuracy import score_answer, score_results
from data.vqa.questions import Annotation
from mcan.evaluation import lambda_selection
from mcan.evaluation.every_k import PredictionsPerK, answer_candidates
from mcan.evaluation.lambda_selection import LambdaTable, assign_folds, make_grid, pick_lambda
from tests.mcan.evaluation.test_predict import ask, build
from tests.mcan.training.small_steps import ALONE
from tests.small_models import compose

WORDS = ["yes", "no", "2", "red"]
LAMS = [0.0, 0.5, 1.0, 2.0, 8.0]
TYPES = ("yes/no", "number", "other")


def annotate(number, image_id, generator):
    answers = tuple(generator.choice(WORDS, 10, p=[0.4, 0.3, 0.2, 0.1]).tolist())
    kind = TYPES[number % 3]
    return Annotation(number, image_id, "what", kind, answers[0], answers)


def make_up(count=90, k_max=3, seed=0):
    """Candidates of questions whose ids are in another order than their annotations."""
    generator = np.random.default_rng(seed)
    ids = np.sort(generator.choice(10_000, count, replace=False))
    gains = generator.exponential(1.0, (count, k_max)).cumsum(1)
    candidates = PredictionsPerK(
        torch.from_numpy(ids),
        torch.from_numpy(gains),
        torch.from_numpy(generator.integers(0, len(WORDS), (count, k_max))),
        torch.rand(count, k_max),
        torch.from_numpy(generator.integers(0, np.arange(1, k_max + 1) + 1, (count, k_max))),
        torch.arange(1, k_max + 1).double(),
    )
    shuffled = generator.permutation(ids).tolist()
    annotations = [annotate(number, n // 4, generator) for n, number in enumerate(shuffled)]
    return candidates, annotations


def select_by_hand(candidates, row, lam, k_max):
    """The k of the least −2·log-likelihood + λk."""
    likelihoods = candidates.log_likelihood[row].tolist()
    return min(range(1, k_max + 1), key=lambda k: -2 * likelihoods[k - 1] + lam * k)


def test_a_model_may_have_more_than_a_hundred_components():
    candidates, annotations = make_up(count=12, k_max=130)
    table = LambdaTable(candidates, annotations, WORDS, [0.0])
    assert table.select(0.0, 130).tolist() == [130] * 12  # without a penalty the most are best


@pytest.fixture(scope="module")
def made_up():
    candidates, annotations = make_up()
    return candidates, annotations, LambdaTable(candidates, annotations, WORDS, LAMS)


def test_each_row_is_scored_as_the_answers_by_themselves_are(made_up):
    candidates, annotations, table = made_up
    rows = table.rows()
    assert [(row.k_max, row.lam) for row in rows] == [(k, lam) for k in (1, 2, 3) for lam in LAMS]
    for row in rows:
        chosen = [
            select_by_hand(candidates, n, row.lam, row.k_max) for n in range(len(annotations))
        ]
        results = {
            int(number): WORDS[int(candidates.answers[n, k - 1])]
            for n, (number, k) in enumerate(zip(candidates.question_ids, chosen, strict=True))
        }
        scores = score_results(annotations, results)
        assert row.accuracy == scores.overall
        assert row.accuracy_by_answer_type == scores.per_answer_type
        sizes = range(1, row.k_max + 1)
        assert row.component_shares == [
            round(100 * chosen.count(k) / len(chosen), 2) for k in sizes
        ]
        collapsed = sum(int(candidates.num_collapsed[n, k - 1]) for n, k in enumerate(chosen))
        assert row.collapsed_share == round(collapsed / sum(chosen), 4)
    assert len({row.accuracy for row in rows}) > 6


def accuracy_by_hand(candidates, annotations, lam, k_max):
    """The accuracy of each annotated question."""
    places = {int(number): row for row, number in enumerate(candidates.question_ids)}
    scores = []
    for annotation in annotations:
        row = places[annotation.question_id]
        k = select_by_hand(candidates, row, lam, k_max)
        answer = WORDS[int(candidates.answers[row, k - 1])]
        scores.append(100 * score_answer(answer, annotation.answers))
    return scores


def choose(accuracy, rows):
    """The best λ over some questions; the largest of equals."""
    return max(LAMS, key=lambda lam: (round(mean(accuracy[lam], rows), 9), lam))


def mean(accuracy, rows):
    return sum(accuracy[row] for row in rows) / len(rows)


@pytest.mark.parametrize("seed", range(4))
def test_cross_validation_is_that_of_a_plain_loop(seed):
    """Choose on all folds but one, score on that one."""
    candidates, annotations = make_up(seed=seed)
    table = LambdaTable(candidates, annotations, WORDS, LAMS)
    folds = assign_folds(np.array([each.image_id for each in annotations]), 4, seed=0)
    for k_max in (2, 3):
        pick = pick_lambda(table, k_max, folds)
        accuracy = {lam: accuracy_by_hand(candidates, annotations, lam, k_max) for lam in LAMS}
        everything, held_out, chosen = range(len(annotations)), [], []
        for fold in range(4):
            inside = [row for row in everything if folds[row] == fold]
            outside = [row for row in everything if folds[row] != fold]
            chosen.append(choose(accuracy, outside))
            held_out.append([accuracy[chosen[-1]][row] for row in inside])
        assert pick.lam == choose(accuracy, everything)
        assert pick.lam_of_folds == chosen
        assert pick.accuracy == pytest.approx(mean(accuracy[pick.lam], everything), abs=0.006)
        pooled = sum(map(sum, held_out)) / len(annotations)
        assert pick.held_out_accuracy == pytest.approx(pooled, abs=0.006)
        means = [sum(fold) / len(fold) for fold in held_out]
        assert pick.accuracy_of_folds == pytest.approx(means, abs=0.006)
        spread = np.std(means, ddof=1) / math.sqrt(4)
        assert pick.held_out_error == pytest.approx(spread, abs=0.006)


def test_of_equal_accuracies_the_largest_penalty_is_picked():
    candidates, annotations = make_up()
    same = PredictionsPerK(
        candidates.question_ids, candidates.log_likelihood, torch.zeros_like(candidates.answers),
        candidates.probabilities, candidates.num_collapsed, candidates.complexity,
    )  # fmt: skip
    table = LambdaTable(same, annotations, WORDS, LAMS)
    folds = assign_folds(np.array([each.image_id for each in annotations]), 3, seed=0)
    pick = pick_lambda(table, 3, folds)
    assert pick.lam == LAMS[-1]
    assert pick.held_out_accuracy == pick.accuracy


def test_the_default_grid_is_zero_and_forty_from_a_twentieth_to_fifty_five_among_them():
    config = compose("select_lambda", ["checkpoint=x"])
    lams = make_grid(**vars(config.grid))
    assert len(lams) == 41  # 5 is two thirds of the way from 0.05 to 50, the 27th of the forty
    assert lams == sorted(lams)
    assert (lams[0], lams[1], lams[27], lams[-1]) == (0.0, 0.05, 5.0, 50.0)
    spaced = np.array(lams[1:])
    ratios = spaced[1:] / spaced[:-1]
    assert ratios == pytest.approx(np.full(39, 1000 ** (1 / 39)), rel=2e-3)
    assert all(float(f"{lam:g}") == lam for lam in lams)  # what is printed is what was used


def test_folds_keep_images_whole_are_even_and_do_not_change():
    image_ids = np.repeat(np.arange(50, 73), [1, 2, 3, 4, 5] * 4 + [1, 1, 1])
    image_ids = np.random.default_rng(1).permutation(image_ids)
    folds = assign_folds(image_ids, 5, seed=0)
    assert all(len(set(folds[image_ids == image])) == 1 for image in set(image_ids))
    sizes = [len(set(image_ids[folds == fold])) for fold in range(5)]
    assert (min(sizes), max(sizes)) == (4, 5)
    assert np.array_equal(folds, assign_folds(image_ids, 5, seed=0))
    order = np.random.default_rng(2).permutation(len(image_ids))
    assert np.array_equal(assign_folds(image_ids[order], 5, seed=0), folds[order])
    assert not np.array_equal(folds, assign_folds(image_ids, 5, seed=1))


def test_the_whole_table_takes_one_pass_and_scores_each_distinct_answer_once(monkeypatch):
    model, batches = build(k_max=4, num_restarts=1), ask()
    ids = [number for batch in batches for number in batch.question_ids.tolist()]
    annotations = [annotate(number, number // 4, np.random.default_rng(0)) for number in ids]
    words = [f"word {n}" for n in range(model.sizes.num_answers)]
    passes, scored = [], []
    attend, score = model.attend, lambda_selection.score_answer
    monkeypatch.setattr(model, "attend", lambda *a, **o: passes.append(1) or attend(*a, **o))
    monkeypatch.setattr(lambda_selection, "score_answer", lambda *a: scored.append(1) or score(*a))
    candidates = answer_candidates(model, batches, ALONE, torch.float32)
    table = LambdaTable(candidates, annotations, words, make_grid(0.05, 50, 40, [0, 5]))
    assert len(table.rows()) == 4 * 41
    assert len(passes) == len(batches)
    assert len(scored) == sum(len(set(row)) for row in candidates.answers.tolist())
