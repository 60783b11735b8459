"""Attention with weights and scores of any size: the results and all gradients are finite."""

import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attention
from attention import Grid, ParaboloidMixture
from attention.em import fit_mixture, log_likelihood
from attention.moments import moment_match
from tests.attention.examples import head_variants
from tests.faults.fuzzing import CASES, limited_time

SIDES = st.one_of(
    st.tuples(st.integers(1, 7), st.integers(1, 7)),
    st.tuples(st.just(1), st.integers(1, 60)),
    st.tuples(st.integers(1, 60), st.just(1)),
    st.just((19, 32)),
)
SIZES = st.lists(SIDES, min_size=1, max_size=3)
# zero, one, the smallest and largest doubles, and values between
WEIGHTS = st.one_of(
    st.sampled_from([0.0, 1.0, 5e-324, 1e-310, 2.3e-308, 1e-30, 1e-12, 1e12, 1e150, 1e300]),
    st.floats(0, 1),
    st.floats(0, 1e300),
)
SCORES = st.one_of(
    st.sampled_from([0.0, -0.0, 1e-45, 88.0, 104.0, -745.0, 1e4, 3.4e38, -3.4e38]),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.floats(-5, 5, width=32),
)
OPTIONS = st.fixed_dictionaries(
    {"floor": st.sampled_from([1e-6, "cell"]), "covariance": st.sampled_from(["full", "spherical"])}
)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def fill(data, sizes, numbers, elsewhere, dtype):
    """(B, L): some cells drawn from `numbers`, the others equal; padding is never drawn."""
    grid = Grid.of(sizes)
    cells = torch.full((len(sizes), grid.num_cells), data.draw(elsewhere), dtype=dtype)
    for row, (height, width) in enumerate(sizes):
        places = st.tuples(st.integers(0, height * width - 1), numbers)
        for place, number in data.draw(st.lists(places, max_size=6)):
            cells[row, place] = number
    return cells, grid


def assert_finite(name, tensor):
    assert tensor.isfinite().all(), f"{name} is not finite"


@settings(max_examples=500)
@given(st.data(), SIZES, st.integers(1, 5), st.integers(0, 12), OPTIONS)
def test_em_is_finite_for_weights_of_any_kind(data, sizes, num_components, iterations, options):
    weights, grid = fill(
        data, sizes, WEIGHTS, st.sampled_from([0.0, 0.0, 1e-310, 1.0]), torch.double
    )
    weights.requires_grad_()
    seed = torch.Generator().manual_seed(data.draw(st.integers(0, 9)))
    means = torch.rand(2, num_components, 2, generator=seed, dtype=torch.double)
    CASES["weights through EM"] += 1
    with limited_time():
        mixtures = {
            "EM": fit_mixture(weights, grid, means, iterations, **options),
            "moment match": moment_match(weights, grid, **options),
        }
        for name, mixture in mixtures.items():
            fitted = log_likelihood(mixture, weights, grid)
            for part in (mixture.pi, mixture.mu, mixture.sigma, fitted):
                assert_finite(name, part)
            assert (mixture.pi.detach().sum(-1) - 1).abs().max() < 1e-9
            total = fitted.sum() + mixture.mu.sum() + mixture.sigma.sum() + (mixture.pi**2).sum()
            total = total + paraboloid_expectations(mixture, grid).sum()
            (gradient,) = torch.autograd.grad(total, weights, retain_graph=True)
            assert_finite(f"the gradient of {name}", gradient)


def paraboloid_expectations(fitted, grid):
    """Of the paraboloids with the moments of fitted Gaussians; all that they give is finite."""
    density = ParaboloidMixture(fitted.pi, fitted.mu, fitted.sigma, fitted.num_components)
    expectations = density.expectations(100, 0.001)
    for part in (expectations, density.density(grid.positions), density.cell_mass(grid)):
        assert_finite("a paraboloid", part)
    return density.pi[..., None] * expectations


@settings(max_examples=500)
@given(
    st.data(),
    SIZES,
    st.sampled_from(head_variants()),
    OPTIONS,
    st.booleans(),
    st.integers(0, 99),
    st.sampled_from([torch.float32, torch.bfloat16, torch.float16]),
)
def test_heads_are_finite_for_scores_of_any_size(data, sizes, head, options, train, step, dtype):
    name, chosen = head
    head = attention.build(name, **chosen, **({} if name == "discrete" else options))
    head.train(train)
    scores, grid = fill(data, sizes, SCORES, st.sampled_from([0.0, -1e4, 3.0]), torch.float32)
    scores = scores.to(dtype).clamp(torch.finfo(dtype).min, torch.finfo(dtype).max)
    scores.requires_grad_()
    CASES["scores through heads"] += 1
    values = torch.randn(*scores.shape, 3, generator=torch.Generator().manual_seed(step))
    values = values.to(dtype).requires_grad_()
    with limited_time(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a grid that the basis fits badly
        output = head(scores, values, grid, step=step)
        assert_finite("the context", output.context)
        assert_finite("a weight", output.weights)
        assert (output.weights.detach().sum(-1) - 1).abs().max() < 1e-4
        if output.mixture is not None:
            for part in (output.mixture.pi, output.mixture.mu, output.mixture.sigma):
                assert_finite("the mixture", part)
        output.context.float().square().sum().backward()
    assert_finite("the gradient of the scores", scores.grad)
    assert_finite("the gradient of the values", values.grad)
