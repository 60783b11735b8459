"""Figures of the published implementation, in float64: tests/golden/em.npz."""

from pathlib import Path

import numpy as np
import pytest
import torch

import attention
from attention.basis import RadialBasis

GOLDEN = np.load(Path(__file__).parents[1] / "golden" / "em.npz")
CASES = sorted({name.split("/")[0] for name in GOLDEN})

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")


@pytest.fixture(params=CASES)
def case(request):
    names = [name for name in GOLDEN if name.startswith(f"{request.param}/")]
    return {name.split("/")[1]: GOLDEN[name] for name in names}


def grid_and_weights(case):
    grid = attention.Grid.of([(int(case["height"]), int(case["width"]))])
    return grid, torch.tensor(case["weights"])[None]


def test_mixture_context_and_likelihood_equal_the_published_ones(case):
    grid, weights = grid_and_weights(case)
    means = torch.tensor(case["init_mu"])[None]
    fitted = attention.fit_mixture(
        weights, grid, init_means=means, iterations=int(case["iterations"])
    )
    matters = case["pi"] > 1e-3  # below it the published code's own floors show
    np.testing.assert_allclose(fitted.pi[0, 0], case["pi"], atol=1e-6, rtol=0)
    np.testing.assert_allclose(fitted.mu[0, 0][matters], case["mu"][matters], atol=1e-6, rtol=0)
    np.testing.assert_allclose(
        fitted.sigma[0, 0][matters], case["sigma"][matters], atol=1e-6, rtol=0
    )
    likelihood = attention.log_likelihood(fitted, weights, grid)[0, 0]
    np.testing.assert_allclose(likelihood, case["loglik"], atol=1e-5, rtol=0)
    context = RadialBasis().cell_weights(fitted, grid)[0, 0] @ torch.tensor(case["values"])
    np.testing.assert_allclose(context, case["context"], atol=1e-5, rtol=0)


def test_moment_match_equals_the_published_one(case):
    grid, weights = grid_and_weights(case)
    fitted = attention.moment_match(weights, grid)
    np.testing.assert_allclose(fitted.mu[0, 0, 0], case["uni_mu"], atol=1e-6, rtol=0)
    np.testing.assert_allclose(fitted.sigma[0, 0, 0], case["uni_sigma"], atol=1e-6, rtol=0)
    likelihood = attention.log_likelihood(fitted, weights, grid)[0, 0]
    np.testing.assert_allclose(likelihood, case["uni_loglik"], atol=1e-5, rtol=0)


def test_the_unimodal_head_gives_the_published_context(case):
    grid, weights = grid_and_weights(case)
    values = torch.tensor(case["values"])[None]
    out = attention.build("unimodal")(weights.log(), values, grid)
    np.testing.assert_allclose(out.context[0], case["uni_context"], atol=1e-5, rtol=0)
