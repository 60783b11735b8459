"""Attention samples: the answers and the attention that evaluation computes."""

import numpy as np
import pytest

from attention import Grid
from mcan.evaluation.evaluation_split import iterate_questions
from mcan.evaluation.predict import predict
from mcan.runtime.precision import choose_dtype
from tests.small_runs import ALONE


def test_the_answers_and_components_are_those_that_validation_predicts(
    models, split, samples, runtime
):
    dtype = choose_dtype("float32", ALONE.device)
    for model, found in zip(models, samples, strict=True):
        words = model.words
        batches = iterate_questions(split.questions, split.stores, model, runtime, ALONE)
        expected = predict(model.model, batches, ALONE, dtype)
        found = sorted(found, key=lambda sample: sample.question_id)
        assert [sample.question_id for sample in found] == expected.question_ids.tolist()
        answers = [words.answers.words[n] for n in expected.answers.tolist()]
        assert [sample.prediction.answer for sample in found] == answers
        assert [sample.num_components for sample in found] == expected.num_components.tolist()


def test_candidates_are_the_heads_own_and_the_least_description_is_selected(models, samples):
    numbers = set()
    for sample in samples[2]:
        lengths = [candidate.description_length for candidate in sample.candidates]
        assert len(lengths) == models[2].options["k_max"]
        for k, candidate in enumerate(sample.candidates, 1):
            expected = -2 * candidate.log_likelihood + 0.05 * k
            assert candidate.description_length == pytest.approx(expected)
            assert len(candidate.mixture.pi) == k
        assert sample.num_components == int(np.argmin(lengths)) + 1
        selected = sample.candidates[sample.num_components - 1]
        assert np.array_equal(selected.mixture.mu, sample.mixture.mu)
        assert selected.prediction == sample.prediction
        numbers.add(sample.num_components)
    assert len(numbers) > 1  # else the test shows little


def test_cells_are_the_weights_or_the_mass_of_the_density(samples):
    for discrete, unimodal in zip(samples[0][:5], samples[1][:5], strict=True):
        height, width = unimodal.cells.shape
        assert discrete.cells.sum() == pytest.approx(1)
        fine = unimodal.mixture.at_pixels(height * 60, width * 60)
        mass = fine.reshape(height, 60, width, 60).mean((1, 3))
        np.testing.assert_allclose(unimodal.cells, mass / mass.sum(), atol=2e-3)
        positions = Grid.of([(height, width)]).positions[0].numpy()
        mean = discrete.cells.ravel() @ positions  # the same network: its moments
        np.testing.assert_allclose(unimodal.mixture.mu[0], mean, atol=1e-6)
