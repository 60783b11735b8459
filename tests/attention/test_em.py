import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.mixture import GaussianMixture

import attention
from attention.em import weighted_em
from attention.initial import initial_mixture
from tests.attention import reference
from tests.attention.examples import blobs, random_means, smooth_weights

sizes = st.tuples(st.integers(2, 8), st.integers(2, 8))
seeds = st.integers(0, 2**20)


def assert_same_mixture(first, second, **tolerance):
    for name in ("pi", "mu", "sigma"):
        torch.testing.assert_close(getattr(first, name), getattr(second, name), **tolerance)


@pytest.mark.parametrize(("height", "width"), [(4, 6), (7, 3), (1, 9)])
@pytest.mark.parametrize("components", [1, 2, 4])
def test_equals_the_papers_algorithm_written_as_loops(height, width, components):
    grid = attention.Grid.of([(height, width)])
    weights = smooth_weights(1, grid, seed=components)
    means = random_means(2, components, seed=height)
    fitted = attention.fit_mixture(weights, grid, means, iterations=4)
    points = reference.centres(height, width)
    for restart in range(2):
        pi, mu, sigma = reference.weighted_em(points, weights[0].numpy(), means[restart].numpy(), 4)
        np.testing.assert_allclose(fitted.pi[0, restart], pi, atol=1e-9)
        np.testing.assert_allclose(fitted.mu[0, restart], mu, atol=1e-8)
        np.testing.assert_allclose(fitted.sigma[0, restart], sigma, atol=1e-8)
        likelihood = reference.log_likelihood(points, weights[0].numpy(), pi, mu, sigma)
        computed = attention.log_likelihood(fitted, weights, grid)[0, restart]
        assert computed == pytest.approx(likelihood, abs=1e-7)


@pytest.mark.parametrize("components", [2, 3, 4])
def test_integer_weights_equal_repeated_points_in_scikit_learn(components):
    grid = attention.Grid.of([(6, 8)])
    counts = np.random.default_rng(components).integers(0, 9, 48)
    points = np.repeat(grid.positions[0].numpy(), counts, axis=0)
    means = random_means(1, components, seed=3)
    theirs = GaussianMixture(
        components,
        means_init=means[0].numpy(),
        weights_init=np.full(components, 1 / components),
        precisions_init=np.stack([1000 * np.eye(2)] * components),
        reg_covar=1e-6,
        tol=0,
        max_iter=7,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it did not converge in seven iterations: nor was it to
        theirs.fit(points)
    weights = torch.tensor(counts / counts.sum())[None]
    ours = attention.fit_mixture(weights, grid, means, iterations=7)
    np.testing.assert_allclose(ours.pi[0, 0], theirs.weights_, atol=1e-8)
    np.testing.assert_allclose(ours.mu[0, 0], theirs.means_, atol=1e-8)
    np.testing.assert_allclose(ours.sigma[0, 0], theirs.covariances_, atol=1e-8)
    likelihood = attention.log_likelihood(ours, weights, grid)[0, 0]
    assert likelihood == pytest.approx(theirs.score(points), abs=1e-8)


@settings(max_examples=40, deadline=None)
@given(
    seed=seeds,
    components=st.integers(1, 4),
    temperature=st.sampled_from([0.3, 2.0]),
    # with the floor it may dip where a covariance is nearly singular
    floor_and_least_variance=st.sampled_from([(0.0, 1e-9), (1e-6, 1e-3)]),
)
def test_likelihood_never_falls_while_no_component_collapses(
    seed, components, temperature, floor_and_least_variance
):
    grid = attention.Grid.of([(8, 10)])
    floor, least_variance = floor_and_least_variance
    weights = smooth_weights(1, grid, seed, temperature)
    means = random_means(1, components, seed)
    before = -torch.inf
    for iterations in range(1, 9):
        fitted = attention.fit_mixture(weights, grid, means, iterations, floor)
        if torch.linalg.eigvalsh(fitted.sigma).min() < least_variance:
            break
        after = attention.log_likelihood(fitted, weights, grid)
        assert after > before - (1e-9 if floor == 0 else 1e-6)
        before = after


@settings(max_examples=30, deadline=None)
@given(size=sizes, seed=seeds, components=st.integers(1, 5), temperature=st.floats(0, 30))
def test_mixing_coefficients_sum_to_one_and_covariances_are_positive_definite(
    size, seed, components, temperature
):
    grid = attention.Grid.of([size])
    weights = smooth_weights(1, grid, seed, temperature)
    fitted = attention.fit_mixture(weights, grid, random_means(2, components, seed), 6)
    torch.testing.assert_close(fitted.pi.sum(-1), torch.ones(1, 2, dtype=torch.float64))
    assert torch.equal(fitted.sigma, fitted.sigma.mT)
    assert (torch.linalg.eigvalsh(fitted.sigma) > 0.99e-6).all()


@settings(max_examples=30, deadline=None)
@given(size=sizes, seed=seeds, floor=st.sampled_from([1e-6, "cell"]))
@pytest.mark.parametrize("covariance", ["full", "spherical"])
def test_em_with_one_component_is_the_moment_match(size, seed, floor, covariance):
    grid = attention.Grid.of([size])
    weights = smooth_weights(1, grid, seed)
    fitted = attention.fit_mixture(weights, grid, random_means(1, 1, seed), 3, floor, covariance)
    matched = attention.moment_match(weights, grid, floor, covariance)
    assert_same_mixture(fitted, matched)


@pytest.mark.parametrize("size", [(8, 8), (3, 12), (19, 32)])
@pytest.mark.parametrize("covariance", ["full", "spherical"])
def test_with_the_cell_floor_no_component_is_narrower_than_its_cell(size, covariance):
    grid = attention.Grid.of([size])
    one_hot = torch.zeros(1, grid.num_cells, dtype=torch.float64)
    one_hot[0, grid.num_cells // 2] = 1
    weights = torch.cat([one_hot, smooth_weights(1, grid, temperature=8.0)])
    grid = attention.Grid.of([size] * 2)
    fitted = attention.fit_mixture(weights, grid, random_means(3, 4), 15, "cell", covariance)
    cell = torch.tensor([1 / (12 * side**2) for side in size], dtype=torch.float64)
    excess = fitted.sigma - torch.diag(cell)
    alive = fitted.pi > 1e-12
    assert (torch.linalg.eigvalsh(excess)[alive] > -1e-12).all()
    if covariance == "full":
        torch.testing.assert_close(
            attention.moment_match(weights, grid, "cell").sigma[0, 0, 0], torch.diag(cell)
        )


def test_a_spherical_component_has_the_mean_variance_of_the_full_one():
    grid = attention.Grid.of([(6, 9)])
    weights = smooth_weights(1, grid)
    full = attention.moment_match(weights, grid, floor=0.0)
    round_one = attention.moment_match(weights, grid, floor=0.0, covariance="spherical")
    variance = full.sigma[0, 0, 0].trace() / 2
    torch.testing.assert_close(round_one.sigma[0, 0, 0], variance * torch.eye(2).double())


def test_a_component_without_mass_keeps_its_mean_and_covariance():
    grid = attention.Grid.of([(10, 10)])
    weights = blobs(10, 10, [0.1, 0.1], 0.05)
    means = torch.tensor([[[0.1, 0.1], [0.95, 0.95]]], dtype=torch.float64)
    weights = weights * (weights > 1e-12)
    fitted = attention.fit_mixture(weights, grid, means, 5)
    assert fitted.pi[0, 0, 1] < 1e-12
    torch.testing.assert_close(fitted.mu[0, 0, 1], means[0, 1])
    torch.testing.assert_close(fitted.sigma[0, 0, 1], 0.001 * torch.eye(2).double())


def test_mixtures_of_different_sizes_in_one_batch_are_those_fitted_alone():
    grid = attention.Grid.of([(6, 8), (5, 5)])
    weights = smooth_weights(2, grid)
    means = random_means(3, 4)
    options = {"iterations": 6, "floor": 1e-6, "covariance": "full"}
    initial = initial_mixture(means.expand(2, -1, -1, -1), (2, 3, 4))
    fitted = weighted_em(weights, grid, initial, **options)
    for restart, k in enumerate((2, 3, 4)):
        alone = attention.fit_mixture(weights, grid, means[restart, None, :k], **options)
        torch.testing.assert_close(fitted.pi[:, restart, :k], alone.pi[:, 0])
        torch.testing.assert_close(fitted.mu[:, restart, :k], alone.mu[:, 0])
        assert not fitted.pi[:, restart, k:].any()


def test_means_may_differ_between_images():
    grid = attention.Grid.of([(5, 6), (6, 5)])
    weights = smooth_weights(2, grid)
    means = torch.stack([random_means(2, 3, seed=1), random_means(2, 3, seed=2)])
    together = attention.fit_mixture(weights, grid, means, 4)
    for image, size in enumerate(grid.sizes):
        one = slice(image, image + 1)
        alone = attention.fit_mixture(weights[one], attention.Grid.of([size]), means[image], 4)
        assert_same_mixture(together.images(one), alone)


def test_weights_need_not_be_normalised_nor_in_float64():
    grid = attention.Grid.of([(5, 6)])
    weights = smooth_weights(1, grid).float()
    means = random_means(1, 2)
    once = attention.fit_mixture(weights, grid, means, 4)
    for factor in (256, 2.0**-40):  # exact in float32
        assert_same_mixture(once, attention.fit_mixture(factor * weights, grid, means, 4))
    assert once.mu.dtype == once.pi.dtype == once.sigma.dtype == torch.float64


def test_weights_in_the_padding_do_not_count():
    grid = attention.Grid.of([(5, 6), (2, 3)])
    weights = torch.rand(2, 30, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    alone = attention.Grid.of([(2, 3)])
    for fit in (
        lambda w, g: attention.moment_match(w, g),
        lambda w, g: attention.fit_mixture(w, g, random_means(1, 2), 4),
    ):
        together, single = fit(weights, grid), fit(weights[1:, :6], alone)
        torch.testing.assert_close(together.mu[1], single.mu[0])
        likelihood = attention.log_likelihood(together, weights, grid)[1]
        torch.testing.assert_close(
            likelihood, attention.log_likelihood(single, 7 * weights[1:, :6], alone)[0]
        )


def test_weights_that_are_zero_everywhere_count_as_equal():
    grid = attention.Grid.of([(5, 6), (2, 3)])
    nothing, equal = torch.zeros(2, 30), torch.ones(2, 30)
    black = attention.fit_mixture(nothing, grid, random_means(1, 2), 4)
    assert_same_mixture(black, attention.fit_mixture(equal, grid, random_means(1, 2), 4))
    assert attention.moment_match(nothing, grid).sigma.isfinite().all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"init_means": torch.rand(3, 2)}, r"init_means of shape \(3, 2\) must be"),
        ({"init_means": torch.rand(1, 2, 3)}, "init_means"),
        ({"init_means": torch.rand(1, 0, 2)}, "init_means"),
        ({"init_means": torch.rand(0, 2, 2)}, "init_means"),
        ({"init_means": torch.rand(5, 1, 2, 2)}, "init_means"),
        ({"iterations": -3}, "iterations must be a whole number from 0 on, not -3"),
        ({"covariance": "diagonal"}, "covariance must be one of full, spherical"),
        ({"floor": "cells"}, "floor"),
    ],
)
def test_options_that_cannot_be_fitted_raise_one_sentence(options, message):
    grid = attention.Grid.of([(5, 6)])
    settings = {"init_means": random_means(1, 2), "iterations": 3, **options}
    with pytest.raises(ValueError, match=message):
        attention.fit_mixture(smooth_weights(1, grid), grid, **settings)


def test_weights_and_mixtures_that_do_not_fit_the_grid_raise():
    grid = attention.Grid.of([(5, 6)] * 2)
    mixture = attention.moment_match(smooth_weights(2, grid), grid)
    with pytest.raises(ValueError, match="do not fit a grid of 2 images padded to 30 cells"):
        attention.moment_match(torch.ones(2, 29), grid)
    with pytest.raises(ValueError, match="2 mixtures do not fit a grid of 1 images"):
        attention.log_likelihood(mixture, torch.ones(1, 30), attention.Grid.of([(5, 6)]))
    with pytest.raises(ValueError, match="do not fit"):
        attention.log_likelihood(mixture, torch.ones(30), grid)


@pytest.mark.parametrize("total", [0.0, 5e-324, 1e-310, 1e-40, 1e-20])
def test_weights_that_sum_to_next_to_nothing_have_finite_gradients(total):
    weights = torch.full((1, 12), total / 12, dtype=torch.float64)
    weights[0, 3] = total
    weights.requires_grad_()
    grid = attention.Grid.of([(3, 4)])
    mixture = attention.fit_mixture(weights, grid, random_means(2, 3))
    mixture.mu.square().sum().backward()
    assert mixture.mu.isfinite().all()
    assert weights.grad.isfinite().all()
