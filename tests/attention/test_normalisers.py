"""Sparsemax and entmax-1.5 against the package `entmax`, and what every normaliser must do."""

from typing import get_args

import entmax
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attention
from attention.grid import Grid
from attention.normalisers import NORMALISERS, Normaliser

ORACLES = {"softmax": torch.softmax, "entmax15": entmax.entmax15, "sparsemax": entmax.sparsemax}
SPARSE = ("entmax15", "sparsemax")
SIZES = [(1, 1), (1, 2), (4, 8), (3, 11), (8, 10), (19, 32), (40, 50)]
SCALES = [1e-9, 1e-3, 0.1, 1.0, 3.0, 100.0, 1e4]

every_normaliser = pytest.mark.parametrize("name", get_args(Normaliser))
every_sparse_one = pytest.mark.parametrize("name", SPARSE)


def normal_scores(size, scale=1.0, batch=6, seed=0):
    """Scores (B, L) in float64 and their grid."""
    grid = Grid.of([size] * batch)
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(batch, grid.num_cells, generator=generator, dtype=torch.float64)
    return scale * scores, grid


def weights_and_gradient(normalise, scores):
    """Weights, and the gradient of their sum with fixed random factors."""
    scores = scores.clone().requires_grad_()
    weights = normalise(scores)
    generator = torch.Generator().manual_seed(1)
    factors = torch.randn(weights.shape, generator=generator, dtype=torch.float64)
    (gradient,) = torch.autograd.grad((weights * factors).sum(), scores)
    return weights.detach(), gradient


def assert_equals_the_oracle(name, scores, grid):
    found = weights_and_gradient(lambda x: NORMALISERS[name](x, grid), scores)
    expected = weights_and_gradient(lambda x: ORACLES[name](x, dim=-1), scores)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=0)
    return found[0]


def test_every_choice_has_a_function():
    assert set(NORMALISERS) == set(get_args(Normaliser)) == set(ORACLES)


@every_normaliser
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scale", SCALES)
def test_weights_and_gradients_are_those_of_entmax(name, size, scale):
    weights = assert_equals_the_oracle(name, *normal_scores(size, scale))
    assert weights.min() >= 0
    torch.testing.assert_close(weights.sum(-1), torch.ones(6).double(), atol=1e-13, rtol=0)


@every_normaliser
@pytest.mark.parametrize("scale", [0.01, 1.0, 1e4])
def test_tied_scores_have_the_same_weights_as_in_entmax(name, scale):
    scores, grid = normal_scores((19, 32))
    scores = (3 * scores).round() * scale
    weights = assert_equals_the_oracle(name, scores, grid)
    for row, tied in zip(weights, scores, strict=True):
        for score in tied.unique():
            assert row[tied == score].unique().numel() == 1


@every_normaliser
@pytest.mark.parametrize("score", [0.0, 1.0, -1e4, 1e4])
@pytest.mark.parametrize("size", SIZES)
def test_equal_scores_have_equal_weights(name, score, size):
    grid = Grid.of([size] * 2)
    weights = assert_equals_the_oracle(
        name, torch.full((2, grid.num_cells), score, dtype=torch.float64), grid
    )
    torch.testing.assert_close(weights, torch.full_like(weights, 1 / grid.num_cells))


@every_sparse_one
@pytest.mark.parametrize(("low", "high"), [(-1e4, 1e4), (0, 1e4), (-1e4, -1e4 + 2)])
def test_one_cell_far_above_the_others_has_all_the_weight(name, low, high):
    scores = torch.full((1, 80), low, dtype=torch.float64)
    scores[0, 7] = high
    weights = assert_equals_the_oracle(name, scores, Grid.of([(8, 10)]))
    assert weights[0, 7] == 1
    assert weights.count_nonzero() == 1


@every_sparse_one
def test_cells_outside_the_support_have_weight_exactly_zero_and_no_gradient(name):
    scores, grid = normal_scores((19, 32), 3.0)
    weights, gradient = weights_and_gradient(lambda x: NORMALISERS[name](x, grid), scores)
    share = (weights == 0).double().mean()
    assert 0.5 < share < 1
    assert not gradient[weights == 0].any()
    assert gradient[weights > 0].all()


def test_sparser_normalisers_have_smaller_supports():
    scores, grid = normal_scores((19, 32), 2.0)
    sparsemax, entmax15, softmax = (
        (NORMALISERS[name](scores, grid) > 0) for name in ("sparsemax", "entmax15", "softmax")
    )
    assert (sparsemax.sum(1) < entmax15.sum(1)).all()
    assert (sparsemax <= entmax15).all()
    assert softmax.all()


@every_normaliser
@pytest.mark.parametrize("inside", [-1e4, 0.0, torch.inf, torch.nan])
def test_padding_has_weight_and_gradient_zero_whatever_stands_there(name, inside):
    sizes = [(8, 10), (3, 4), (1, 1)]
    grid = Grid.of(sizes)
    scores = normal_scores((8, 10), batch=3)[0].masked_fill(~grid.mask, inside)
    weights, gradient = weights_and_gradient(lambda x: NORMALISERS[name](x, grid), scores)
    assert not weights[~grid.mask].any()
    assert not gradient[~grid.mask].any()
    for row, (height, width) in enumerate(sizes):
        cells = height * width
        alone = ORACLES[name](scores[row, :cells], dim=-1)
        torch.testing.assert_close(weights[row, :cells], alone, atol=1e-12, rtol=0)


@every_sparse_one
@pytest.mark.parametrize("size", [(1, 1), (2, 3), (5, 7)])
def test_gradients_equal_finite_differences_away_from_the_kinks(name, size):
    scores, grid = normal_scores(size, 0.7, batch=2)
    step = 1e-6
    support = NORMALISERS[name](scores, grid) > 0
    for shift in (-3 * step, 3 * step):  # of each score: none enters or leaves the support
        for cell in range(grid.num_cells):
            moved = scores.clone()
            moved[:, cell] += shift
            assert torch.equal(NORMALISERS[name](moved, grid) > 0, support)
    assert torch.autograd.gradcheck(
        lambda x: NORMALISERS[name](x, grid), scores.requires_grad_(), eps=step, atol=1e-8
    )


SCORES = st.lists(st.floats(-20, 20), min_size=1, max_size=70)


@every_normaliser
@settings(max_examples=60, deadline=None)
@given(scores=SCORES, shift=st.floats(-1e3, 1e3), seed=st.integers(0, 99))
def test_weights_sum_to_one_and_follow_a_shift_and_a_permutation_of_the_scores(
    name, scores, shift, seed
):
    scores, grid = torch.tensor(scores, dtype=torch.float64)[None], Grid.of([(1, len(scores))])
    weights = NORMALISERS[name](scores, grid)
    assert weights.min() >= 0
    assert abs(weights.sum() - 1) < 1e-13
    shifted = NORMALISERS[name](scores + shift, grid)
    torch.testing.assert_close(shifted, weights, atol=1e-11, rtol=0)  # 1e3 + x is rounded
    order = torch.randperm(grid.num_cells, generator=torch.Generator().manual_seed(seed))
    torch.testing.assert_close(
        NORMALISERS[name](scores[:, order], grid), weights[:, order], atol=1e-14, rtol=0
    )


@every_normaliser
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_scores_of_any_dtype_give_float64_weights(name, dtype):
    scores, grid = normal_scores((8, 10))
    scores = scores.to(dtype)
    weights = NORMALISERS[name](scores, grid)
    assert weights.dtype == torch.float64
    torch.testing.assert_close(weights, ORACLES[name](scores.double(), dim=-1))


@every_normaliser
def test_a_score_that_is_not_a_number_is_not_hidden(name):
    """The training step looks for it in the loss."""
    scores, grid = normal_scores((8, 10))
    scores[2, 5] = torch.nan
    weights, gradient = weights_and_gradient(lambda x: NORMALISERS[name](x, grid), scores)
    assert weights[2].isnan().all()
    assert gradient[2].isnan().all()
    others = torch.arange(6) != 2
    assert weights[others].isfinite().all()


@every_sparse_one
def test_a_second_derivative_is_refused_and_not_wrong(name):
    scores, grid = normal_scores((2, 3))
    scores.requires_grad_()
    total = NORMALISERS[name](scores, grid).square().sum()
    (gradient,) = torch.autograd.grad(total, scores, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


@every_normaliser
def test_deterministic_algorithms_suffice(name):
    scores, grid = normal_scores((19, 32))
    expected = weights_and_gradient(lambda x: NORMALISERS[name](x, grid), scores)
    torch.use_deterministic_algorithms(True)
    try:
        found = weights_and_gradient(lambda x: NORMALISERS[name](x, grid), scores)
    finally:
        torch.use_deterministic_algorithms(False)
    assert all(map(torch.equal, found, expected))


@every_normaliser
@pytest.mark.parametrize("head", attention.available())
def test_every_head_takes_the_option(name, head):
    scores, grid = normal_scores((8, 10))
    values = torch.randn(6, 80, 3, dtype=torch.float64)
    out = attention.build(head, normaliser=name).eval()(scores, values, grid)
    torch.testing.assert_close(out.weights, ORACLES[name](scores, dim=-1), atol=1e-12, rtol=0)


def test_a_wrong_name_is_one_sentence():
    with pytest.raises(ValueError, match="normaliser must be one of") as error:
        attention.build("discrete", normaliser="tvmax")
    assert str(error.value) == (
        "normaliser must be one of softmax, entmax15, sparsemax, not 'tvmax'"
    )
