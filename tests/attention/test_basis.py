import warnings

import numpy as np
import pytest
import torch
from scipy import stats

import attention
from attention.basis import RadialBasis, mean_of_ones
from tests.attention import reference
from tests.attention.examples import mixture

DEVIATIONS = [0.001, 0.01, 0.05, 0.2, 0.5]


def image_function(coefficient):
    """V_B(x) = Bψ(x) of Eq. (1), evaluated at points (P, 2) by NumPy."""
    centre = reference.basis_centres()

    def evaluate(points):
        distance = ((points[:, None] - centre) ** 2).sum(-1)
        return np.exp(-distance / 0.002) / (2 * np.pi * 0.001) @ coefficient.T  # (P, D)

    return evaluate


def quadrature_nodes(mu, sigma, num=220):
    """Points and weights for ∫ N(x; μ, Σ) f(x) dx where f is zero far from the unit square."""
    nodes, weights = np.polynomial.legendre.leggauss(num)
    sides = []
    for axis in range(2):
        reach = 9 * np.sqrt(sigma[axis, axis])
        low, high = max(mu[axis] - reach, -0.3), min(mu[axis] + reach, 1.3)
        sides.append((low + (high - low) * (nodes + 1) / 2, weights * (high - low) / 2))
    points = np.stack(np.meshgrid(sides[0][0], sides[1][0], indexing="ij"), -1).reshape(-1, 2)
    density = stats.multivariate_normal(mu, sigma).pdf(points)
    return points, np.outer(sides[0][1], sides[1][1]).ravel() * density


@pytest.fixture
def values():
    return np.random.default_rng(0).normal(size=(80, 3))


def test_ridge_operator_equals_least_squares(values):
    grid = attention.Grid.of([(8, 10)])
    operator = RadialBasis().ridge_operator(grid)[0].numpy()
    expected = reference.coefficients(values, reference.centres(8, 10))
    np.testing.assert_allclose(values.T @ operator, expected, atol=1e-8)


@pytest.mark.parametrize("deviation", DEVIATIONS)
def test_context_equals_the_integral_of_density_times_image(values, deviation):
    sigma = np.array([[1.0, 0.4], [0.4, 0.8]]) * deviation**2
    mu = np.array([0.4, 0.55])
    grid = attention.Grid.of([(8, 10)])
    alpha = RadialBasis().cell_weights(mixture([1.0], [mu.tolist()], [sigma.tolist()]), grid)
    points, weights = quadrature_nodes(mu, sigma)
    image = image_function(reference.coefficients(values, reference.centres(8, 10)))
    np.testing.assert_allclose(alpha[0, 0].numpy() @ values, weights @ image(points), atol=1e-6)


def test_context_of_a_mixture_is_the_mixture_of_contexts(values):
    grid = attention.Grid.of([(8, 10)])
    basis = RadialBasis()
    first = ([0.3, 0.2], [[0.01, 0.0], [0.0, 0.02]])
    second = ([0.7, 0.9], [[0.02, 0.01], [0.01, 0.03]])
    both = mixture([0.25, 0.75], [first[0], second[0]], [first[1], second[1]])
    separate = [
        basis.cell_weights(mixture([1.0], [mu], [sigma]), grid) for mu, sigma in (first, second)
    ]
    torch.testing.assert_close(
        basis.cell_weights(both, grid), 0.25 * separate[0] + 0.75 * separate[1]
    )


@pytest.mark.parametrize("deviation", [0.03, 0.1, 0.3])
def test_jacobians_are_the_papers_covariances(values, deviation):
    """∂c/∂μ = Cov(V_B(x), x)Σ⁻¹ and ∂c/∂Σ = ½Σ⁻¹Cov(V_B(x), (x−μ)(x−μ)ᵀ)Σ⁻¹, by quadrature."""
    mu = torch.tensor([0.4, 0.6], dtype=torch.float64, requires_grad=True)
    sigma = (
        torch.tensor([[1.0, 0.3], [0.3, 0.7]], dtype=torch.float64) * deviation**2
    ).requires_grad_()
    grid = attention.Grid.of([(8, 10)])
    one = torch.ones(1, 1, 1, dtype=torch.float64)
    density = attention.Mixture(
        one, mu[None, None, None], sigma[None, None, None], torch.ones(1, 1)
    )
    context = RadialBasis().cell_weights(density, grid)[0, 0] @ torch.tensor(values)

    m, s = mu.detach().numpy(), sigma.detach().numpy()
    points, weights = quadrature_nodes(m, s)
    image = image_function(reference.coefficients(values, reference.centres(8, 10)))(points)
    offset = points - m
    outer = offset[:, :, None] * offset[:, None, :]
    inverse = np.linalg.inv(s)
    by_mu = np.einsum("p,pd,pi->di", weights, image, offset) @ inverse
    by_sigma = 0.5 * inverse @ np.einsum("p,pd,pij->dij", weights, image, outer - s) @ inverse
    for d in range(3):
        got_mu, got_sigma = torch.autograd.grad(context[d], [mu, sigma], retain_graph=True)
        np.testing.assert_allclose(got_mu, by_mu[d], rtol=1e-5, atol=1e-6)
        # Σ is symmetric: autograd may put an off-diagonal derivative on either side
        np.testing.assert_allclose((got_sigma + got_sigma.T) / 2, by_sigma[d], rtol=1e-5, atol=1e-5)


def test_each_image_of_a_mixed_batch_has_its_own_operator():
    both = RadialBasis().ridge_operator(attention.Grid.of([(8, 10), (10, 10)]))
    alone = RadialBasis().ridge_operator(attention.Grid.of([(8, 10)]))
    assert both.shape == (2, 100, 100)
    torch.testing.assert_close(both[0, :80], alone[0])
    assert not both[0, 80:].any()


@pytest.mark.filterwarnings("ignore:a constant image")
def test_number_variance_and_ridge_are_options():
    grid = attention.Grid.of([(8, 10)])
    assert RadialBasis(num_basis=25).ridge_operator(grid).shape == (1, 80, 25)
    default = RadialBasis().ridge_operator(grid)
    assert not torch.allclose(default, RadialBasis(variance=0.004).ridge_operator(grid))
    assert not torch.allclose(default, RadialBasis(ridge=1.0).ridge_operator(grid))


@pytest.mark.filterwarnings("ignore:a constant image")
@pytest.mark.parametrize("size", [(9, 9), (6, 17), (19, 32), (2, 10)])
@pytest.mark.parametrize("num_basis", [100, 49])
def test_the_mean_of_a_fitted_constant_image_is_that_over_many_points(size, num_basis):
    basis = RadialBasis(num_basis)
    operator = basis.ridge_operator(attention.Grid.of([size]))[0]
    points = attention.Grid.of([(64, 64)]).positions[0]
    fitted = operator.sum(0) @ basis.evaluate(points)
    assert mean_of_ones(operator, basis) == pytest.approx(float(fitted.mean()), abs=1e-3)


def test_a_grid_out_of_step_with_the_basis_warns_once():
    basis = RadialBasis(ridge=0.0101)  # a setting that no other test has cached
    with pytest.warns(UserWarning, match="9×9 grid is fitted as 2.7"):
        basis.ridge_operator(attention.Grid.of([(9, 9)]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        basis.ridge_operator(attention.Grid.of([(9, 9)]))
        basis.ridge_operator(attention.Grid.of([(19, 32), (25, 19), (8, 10)]))
