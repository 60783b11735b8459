import numpy as np
import pytest
import torch
from scipy import integrate, stats

import attention
from tests.attention.examples import mixture, random_means, smooth_weights

DEVIATIONS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.5]


def covariance(row, column, correlation):
    shared = correlation * row * column
    return [[row**2, shared], [shared, column**2]]


def test_density_equals_scipys():
    two = mixture(
        [0.3, 0.7],
        [[0.2, 0.4], [0.7, 0.6]],
        [covariance(0.1, 0.2, 0.5), covariance(0.05, 0.3, -0.8)],
    )
    points = torch.rand(50, 2, dtype=torch.float64)
    expected = sum(
        float(pi) * stats.multivariate_normal(mu.numpy(), sigma.numpy()).pdf(points.numpy())
        for pi, mu, sigma in zip(two.pi[0, 0], two.mu[0, 0], two.sigma[0, 0], strict=True)
    )
    np.testing.assert_allclose(two.density(points)[0, 0], expected, rtol=1e-10)


def test_density_takes_points_of_each_image():
    grid = attention.Grid.of([(5, 6), (6, 5)])
    fitted = attention.fit_mixture(smooth_weights(2, grid), grid, random_means(2, 3), 4)
    points = torch.rand(2, 7, 2, dtype=torch.float64)
    both = fitted.density(points)
    assert both.shape == (2, 2, 7)
    torch.testing.assert_close(both[1], fitted.density(points[1])[1])


@pytest.mark.parametrize("deviation", DEVIATIONS)
@pytest.mark.parametrize("correlation", [0.0, 0.7, -0.95])
def test_cell_mass_equals_two_dimensional_quadrature(deviation, correlation):
    mu, sigma = [0.43, 0.52], covariance(deviation, 1.5 * deviation, correlation)
    mass = mixture([1.0], [mu], [sigma]).cell_mass(attention.Grid.of([(4, 5)]))[0, 0].view(4, 5)
    law = stats.multivariate_normal(mu, sigma)
    # integrate over each cell's overlap with ±8 deviations, where all of the mass is
    for row in range(4):
        for column in range(5):
            expected = quadrature(
                law, mu, deviation, (row / 4, (row + 1) / 4), (column / 5, (column + 1) / 5)
            )
            assert mass[row, column] == pytest.approx(expected, abs=2e-7)


def quadrature(law, mu, deviation, rows, columns):
    """A fine two-dimensional midpoint rule on the part of the cell that can hold mass."""
    sides = []
    for centre, width, (low, high) in zip(mu, (1, 1.5), (rows, columns), strict=True):
        low = max(low, centre - 8 * width * deviation)
        high = min(high, centre + 8 * width * deviation)
        if low >= high:
            return 0.0
        nodes, weights = np.polynomial.legendre.leggauss(160)
        sides.append((low + (high - low) * (nodes + 1) / 2, weights * (high - low) / 2))
    (u, wu), (v, wv) = sides
    points = np.stack(np.meshgrid(u, v, indexing="ij"), -1)
    return float(wu @ law.pdf(points) @ wv)


def test_cell_masses_of_a_density_inside_the_image_sum_to_one():
    for squeezed in (0.0, 0.9, 0.9999, -0.99999):
        narrow = mixture([1.0], [[0.5, 0.5]], [covariance(0.07, 0.05, squeezed)])
        for size in [(1, 1), (1, 7), (7, 1), (19, 32)]:
            total = narrow.cell_mass(attention.Grid.of([size])).sum()
            assert total == pytest.approx(1, abs=1e-9), (squeezed, size)


def test_a_density_squeezed_onto_a_diagonal_puts_its_mass_on_the_diagonal_cells():
    line = mixture([1.0], [[0.5, 0.5]], [covariance(0.2, 0.2, 0.999999)])
    mass = line.cell_mass(attention.Grid.of([(5, 5)]))[0, 0].view(5, 5)
    along = stats.norm(0.5, 0.2).cdf(np.linspace(0, 1, 6))
    np.testing.assert_allclose(mass.diagonal(), np.diff(along), atol=2e-3)


def test_cell_mass_is_zero_in_padding():
    grid = attention.Grid.of([(5, 6), (2, 3)])
    fitted = attention.fit_mixture(smooth_weights(2, grid), grid, random_means(1, 2), 4)
    mass = fitted.cell_mass(grid)
    assert not mass[1, :, 6:].any()
    alone = attention.fit_mixture(
        smooth_weights(2, grid)[1:, :6], attention.Grid.of([(2, 3)]), random_means(1, 2), 4
    )
    torch.testing.assert_close(mass[1, :, :6], alone.cell_mass(attention.Grid.of([(2, 3)]))[0])


def test_one_cell_that_is_the_image_holds_what_scipy_says_lies_inside():
    wide = mixture(
        [0.4, 0.6], [[0.1, 0.2], [0.9, 0.5]], [covariance(0.5, 0.4, 0.3), covariance(0.2, 0.6, 0)]
    )
    expected, _ = integrate.dblquad(
        lambda v, u: float(wide.density(torch.tensor([[u, v]], dtype=torch.float64))), 0, 1, 0, 1
    )
    assert wide.cell_mass(attention.Grid.of([(1, 1)])).item() == pytest.approx(expected, abs=1e-7)
