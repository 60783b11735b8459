"""Truncated paraboloids against quadrature on the disc, SciPy, and continuous sparsemax."""

import numpy as np
import pytest
import torch
from scipy import integrate

import attention
from attention.basis import RadialBasis
from attention.densities.paraboloid import chord_mean
from tests.attention import reference
from tests.attention.examples import mixture, random_means, smooth_weights

VARIANCE = 0.001

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")


def covariance(row, column, correlation):
    shared = correlation * row * column
    return [[row**2, shared], [shared, column**2]]


def paraboloids(pi, mu, sigma):
    """A mixture of paraboloids with B = R = 1 from nested lists."""
    gaussians = mixture(pi, mu, sigma)
    return attention.ParaboloidMixture(
        gaussians.pi, gaussians.mu, gaussians.sigma, gaussians.num_components
    )


def paraboloid_at(points, mu, sigma):
    """[1 − d²/6]₊ / (3π √|S|) at points (…, 2), by NumPy."""
    offset = np.asarray(points) - mu
    squared = np.einsum("...i,ij,...j->...", offset, np.linalg.inv(sigma), offset)
    return np.maximum(1 - squared / 6, 0) / (3 * np.pi * np.sqrt(np.linalg.det(sigma)))


def disc_nodes(mu, sigma, num_radii=300, num_angles=900):
    """Points and weights for ∫ p(x) f(x) dx: Gauss–Legendre along radii of the ellipse d² ≤ 6.

    The axes are those of the eigenvectors, and p is evaluated by its formula: nothing is shared
    with the code.
    """
    nodes, weights = np.polynomial.legendre.leggauss(num_radii)
    radius, angle = (nodes + 1) / 2, np.arange(num_angles) * 2 * np.pi / num_angles
    disc = radius[:, None, None] * np.stack([np.cos(angle), np.sin(angle)], -1)
    lengths, axes = np.linalg.eigh(sigma)
    points = mu + (disc * np.sqrt(6 * lengths)) @ axes.T
    area = 6 * np.sqrt(np.prod(lengths)) * radius * weights / 2 * 2 * np.pi / num_angles
    return points.reshape(-1, 2), (paraboloid_at(points, mu, sigma) * area[:, None]).ravel()


def basis_rows(points):
    """The Gaussians of one axis at points (P,) -> (P, 10)."""
    side = np.linspace(0, 1, 10)
    return np.exp(-((points[:, None] - side) ** 2) / (2 * VARIANCE)) / np.sqrt(2 * np.pi * VARIANCE)


def expected_basis(mu, sigma, **numbers):
    points, weights = disc_nodes(np.array(mu), np.array(sigma), **numbers)
    return (basis_rows(points[:, 0]).T * weights @ basis_rows(points[:, 1])).ravel()


CASES = [
    ([0.43, 0.52], covariance(0.005, 0.008, 0.7)),
    ([0.1, 0.95], covariance(0.1, 0.06, -0.9)),
    ([-0.2, 1.3], covariance(0.3, 0.2, 0.9)),
]


@pytest.mark.parametrize(("mu", "sigma"), CASES)
def test_density_is_the_formula_and_zero_outside_the_ellipse(mu, sigma):
    density = paraboloids([1.0], [mu], [sigma])
    inside, _ = disc_nodes(np.array(mu), np.array(sigma), 7, 11)
    outside = mu + 1.3 * (inside[-11:] - mu)
    for points in (inside, outside):
        np.testing.assert_allclose(
            density.density(torch.tensor(points))[0, 0],
            paraboloid_at(points, mu, sigma),
            rtol=1e-9,
            atol=1e-12,
        )
    assert (density.density(torch.tensor(inside)) > 0).all()
    assert not density.density(torch.tensor(outside)).any()


@pytest.mark.parametrize(("mu", "sigma"), CASES)
def test_integral_mean_and_covariance_by_scipys_quadrature(mu, sigma):
    """Over x itself, up to the ellipse that `support` gives: not over a disc."""
    density, sigma = paraboloids([1.0], [mu], [sigma]), np.array(sigma)
    given_row = sigma[1, 1] - sigma[0, 1] ** 2 / sigma[0, 0]
    reach = np.sqrt(density.support * sigma[0, 0])

    def chord(u):
        middle = mu[1] + sigma[0, 1] / sigma[0, 0] * (u - mu[0])
        half = np.sqrt(density.support * given_row * max(1 - ((u - mu[0]) / reach) ** 2, 0))
        return middle, half

    def along_the_row(angle):
        """∫ p·[1, v, v²] dv along one chord; angles take the root at the ellipse's ends away."""
        u = mu[0] + reach * np.sin(angle)
        middle, half = chord(u)
        nodes, weights = np.polynomial.legendre.leggauss(6)  # exact: p is quadratic in v
        v = middle + half * nodes
        points = torch.tensor(np.stack([np.full_like(v, u), v], -1))
        p = density.density(points)[0, 0].numpy() * half * weights * reach * np.cos(angle)
        return np.array([p, p * u, p * v, p * u * u, p * u * v, p * v * v]).sum(1)

    moments, _ = integrate.quad_vec(along_the_row, -np.pi / 2, np.pi / 2, epsabs=1e-10)
    assert moments[0] == pytest.approx(1, abs=1e-8)
    np.testing.assert_allclose(moments[1:3], mu, atol=1e-8)
    u, v, uu, uv, vv = moments[1:]
    found = [[uu - u * u, uv - u * v], [uv - u * v, vv - v * v]]
    np.testing.assert_allclose(found, sigma, atol=1e-8)


@pytest.mark.parametrize(
    ("mu", "sigma", "tolerance"),
    [
        *((mu, sigma, 1e-6) for mu, sigma in CASES),
        ([0.5, 0.5], covariance(0.3, 0.3, -0.9), 1e-6),
        ([0.9, 0.2], covariance(0.005, 0.3, 0.9), 1e-6),
        ([0.9, 0.2], covariance(0.3, 0.005, -0.9), 1e-6),
        ([0.44, 0.56], covariance(0.001, 0.001, 0.5), 1e-6),
        ([0.5, 0.4], covariance(0.5, 0.5, 0.99), 1e-4),
        ([0.5, 0.4], covariance(0.5, 0.2, -0.99), 1e-4),
        ([1.4, -0.3], covariance(0.5, 0.5, -0.99), 1e-4),
    ],
)
def test_expectations_equal_quadrature_on_the_ellipse(mu, sigma, tolerance):
    found = paraboloids([1.0], [mu], [sigma]).expectations(100, VARIANCE)[0, 0, 0]
    np.testing.assert_allclose(found, expected_basis(mu, sigma), atol=tolerance, rtol=0)


def test_an_expectation_equals_scipys_dblquad():
    mu, sigma = [0.4, 0.6], covariance(0.08, 0.12, 0.6)
    found = paraboloids([1.0], [mu], [sigma]).expectations(100, VARIANCE)[0, 0, 0].view(10, 10)
    factor = np.sqrt(6) * np.linalg.cholesky(sigma)

    def integrand(angle, radius):
        u, v = mu + factor @ (radius * np.array([np.cos(angle), np.sin(angle)]))
        squared = (u - 4 / 9) ** 2 + (v - 5 / 9) ** 2
        basis = np.exp(-squared / (2 * VARIANCE)) / (2 * np.pi * VARIANCE)
        return 2 / np.pi * (1 - radius**2) * radius * basis

    expected, _ = integrate.dblquad(integrand, 0, 1, 0, 2 * np.pi, epsabs=1e-9)
    assert found[4, 5].item() == pytest.approx(expected, abs=1e-7)


def test_the_context_is_the_integral_of_the_density_times_the_image():
    values = np.random.default_rng(0).normal(size=(80, 3))
    mu, sigma = [[0.4, 0.55], [0.7, 0.2]], [covariance(0.1, 0.2, 0.4), covariance(0.05, 0.03, -0.6)]
    grid, pi = attention.Grid.of([(8, 10)]), [0.3, 0.7]
    found = RadialBasis().cell_weights(paraboloids(pi, mu, sigma), grid)[0, 0].numpy() @ values
    coefficients = reference.coefficients(values, reference.centres(8, 10))  # (D, N)
    r = sum(p * expected_basis(m, s) for p, m, s in zip(pi, mu, sigma, strict=True))
    np.testing.assert_allclose(found, coefficients @ r, atol=1e-6)


@pytest.mark.parametrize("half", [0.0, 1e-4, 0.0199, 0.0201, 0.1, 0.5, 3.0, 40.0])
def test_the_mean_along_a_chord_equals_scipys_quadrature(half):
    """Within 1e-11, on both sides of where the series takes over, far away and near."""
    for distance in (0.0, 0.3, -2.5, 8.0, -45.0):
        expected, _ = integrate.quad(
            lambda t, m=distance: 0.75 * (1 - t * t) * np.exp(-((m + half * t) ** 2)),
            -1, 1, points=[np.clip(-distance / half, -1, 1)] if half else None, epsabs=1e-13,
            limit=500,
        )  # fmt: skip
        found = chord_mean(*(torch.tensor(x, dtype=torch.double) for x in (distance, half**2)))
        assert found.item() == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize(("row", "column", "correlation"), [
    (0.2, 0.1, 0.5), (0.05, 0.3, -0.9), (0.01, 0.01, 0.0), (0.1, 0.0005, 0.3), (0.001, 0.001, 0.0),
])  # fmt: skip
def test_gradients_equal_finite_differences(row, column, correlation):
    deviations = torch.tensor([row, column], dtype=torch.double)

    def context(mu, scaled):
        """μ and S in units of the deviations, so that one step fits every entry."""
        sigma = scaled * deviations[:, None] * deviations
        one = torch.ones(1, 1, 1, dtype=torch.double)
        density = attention.ParaboloidMixture(one, mu[None, None], sigma[None, None], one[0].long())
        return density.expectations(100, VARIANCE)[..., ::7]

    mu = torch.tensor([[0.41, 0.58]], dtype=torch.double, requires_grad=True)
    scaled = torch.tensor([[[1, correlation], [correlation, 1]]], dtype=torch.double)
    inputs = (mu, scaled.requires_grad_())
    assert torch.autograd.gradcheck(context, inputs, eps=1e-6, atol=1e-4, rtol=1e-4)


def test_a_point_and_a_line_have_finite_expectations_and_gradients():
    """S of rank 0 and 1, and a component that is not in use."""
    sigma = torch.zeros(1, 1, 4, 2, 2, dtype=torch.double)
    sigma[0, 0, 1, 0, 0] = sigma[0, 0, 2, 1, 1] = 0.01
    sigma[0, 0, 3] = 0.02
    sigma.requires_grad_()
    mu = torch.full((1, 1, 4, 2), 0.45, dtype=torch.double, requires_grad=True)
    pi = torch.tensor([[[0.5, 0.5, 0.0, 0.0]]], dtype=torch.double, requires_grad=True)
    density = attention.ParaboloidMixture(pi, mu, sigma, torch.tensor([[2]]))
    r = pi[..., None, :] @ density.expectations(100, VARIANCE)
    assert r.isfinite().all()
    for gradient in torch.autograd.grad(r.square().sum(), [pi, mu, sigma]):
        assert gradient.isfinite().all()


def test_a_vanishing_covariance_gives_the_value_function_at_the_mean():
    mu = [0.44, 0.71]
    at_the_mean = basis_rows(np.array(mu[:1])).T @ basis_rows(np.array(mu[1:]))
    for deviation, tolerance in [(1e-3, 5e-2), (1e-4, 5e-4), (1e-6, 1e-7), (0.0, 1e-7)]:
        sigma = covariance(deviation, deviation, 0.4)
        found = paraboloids([1.0], [mu], [sigma]).expectations(100, VARIANCE)[0, 0, 0]
        np.testing.assert_allclose(found, at_the_mean.ravel(), atol=tolerance, rtol=0)


def test_expectations_are_continuous_in_the_covariance():
    """The series and the closed form meet; nothing jumps as a chord shrinks."""
    scales = torch.logspace(-8, -0.6, 400, dtype=torch.double)  # of the deviations
    shape = torch.tensor(covariance(1.0, 0.7, 0.5), dtype=torch.double)
    sigma = (scales**2)[:, None, None, None, None] * shape
    one = torch.ones(400, 1, 1, dtype=torch.double)
    mu = torch.tensor([0.42, 0.57], dtype=torch.double).expand(400, 1, 1, 2)
    r = attention.ParaboloidMixture(one, mu, sigma, one[..., 0].long()).expectations(100, VARIANCE)
    step = r.diff(dim=0).abs().amax((1, 2, 3))
    assert (step < 0.05 * r.max()).all()  # each scale is 4 % larger than the one before
    assert (step[scales[1:] < 1e-4] < 1e-3).all()  # and as deviations vanish nothing changes


def test_a_mirrored_density_has_mirrored_expectations_and_masses():
    density = paraboloids([1.0], [[0.3, 0.6]], [covariance(0.1, 0.2, 0.6)])
    grid = attention.Grid.of([(7, 6)])
    for axis, mu in [(0, [0.7, 0.6]), (1, [0.3, 0.4])]:
        mirrored = paraboloids([1.0], [mu], [covariance(0.1, 0.2, -0.6)])
        torch.testing.assert_close(
            mirrored.expectations(100, VARIANCE).view(10, 10),
            density.expectations(100, VARIANCE).view(10, 10).flip(axis),
        )
        torch.testing.assert_close(
            mirrored.cell_mass(grid).view(7, 6), density.cell_mass(grid).view(7, 6).flip(axis)
        )


@pytest.mark.parametrize(
    ("mu", "sigma"),
    [
        ([0.43, 0.52], covariance(0.001, 0.0015, 0.7)),
        ([0.43, 0.52], covariance(0.1, 0.15, -0.95)),
        ([0.9, 0.1], covariance(0.3, 0.2, 0.5)),
        ([0.6, 0.4], covariance(0.5, 0.5, 0.99)),
    ],
)
def test_cell_masses_equal_adaptive_quadrature(mu, sigma):
    found = paraboloids([1.0], [mu], [sigma]).cell_mass(attention.Grid.of([(4, 5)]))[0, 0]
    for cell, mass in enumerate(found.view(4, 5).flatten().tolist()):
        row, column = divmod(cell, 5)
        expected = mass_by_quadrature(
            mu, np.array(sigma), (row / 4, (row + 1) / 4), (column / 5, (column + 1) / 5)
        )
        assert mass == pytest.approx(expected, abs=1e-8), (row, column)


def mass_by_quadrature(mu, sigma, rows, columns):
    """SciPy's adaptive rule over the rows; p is quadratic along the part of a chord in the cell."""
    reach, slope = np.sqrt(6 * sigma[0, 0]), sigma[0, 1] / sigma[0, 0]
    spread = 6 * (sigma[1, 1] - slope * sigma[0, 1])
    nodes, weights = np.polynomial.legendre.leggauss(3)

    def chord(u):
        middle = mu[1] + slope * (u - mu[0])
        half = np.sqrt(spread * max(1 - ((u - mu[0]) / reach) ** 2, 0))
        low, high = max(columns[0], middle - half), min(columns[1], middle + half)
        if low >= high:
            return 0.0
        v = low + (high - low) * (nodes + 1) / 2
        points = np.stack([np.full_like(v, u), v], -1)
        return (high - low) / 2 * (weights @ paraboloid_at(points, mu, sigma))

    first, last = max(rows[0], mu[0] - reach), min(rows[1], mu[0] + reach)
    if first >= last:
        return 0.0
    return integrate.quad(chord, first, last, limit=500, epsabs=1e-10)[0]


def test_cell_masses_of_a_density_inside_the_image_sum_to_one():
    for squeezed in (0.0, 0.9, 0.9999, -0.99999):
        narrow = paraboloids([1.0], [[0.5, 0.5]], [covariance(0.2, 0.15, squeezed)])
        for size in [(1, 1), (1, 7), (7, 1), (19, 32)]:
            total = narrow.cell_mass(attention.Grid.of([size])).sum()
            assert total == pytest.approx(1, abs=1e-10), (squeezed, size)


def test_cells_outside_the_support_have_no_mass_and_padding_none_either():
    one = paraboloids([1.0], [[0.25, 0.25]], [covariance(0.05, 0.05, 0.0)])
    mass = one.cell_mass(attention.Grid.of([(2, 2)])).view(2, 2)
    assert mass[0, 0] == pytest.approx(1)
    assert not mass.flatten()[1:].any()
    grid = attention.Grid.of([(5, 6), (2, 3)])
    head = attention.build("multimodal", density="paraboloid")
    out = head(smooth_weights(2, grid).log().clamp_min(-50), torch.zeros(2, 30, 1), grid, 2)
    assert not out.mixture.cell_mass(grid)[1, :, 6:].any()


def test_the_published_continuous_sparsemax_is_this_paraboloid():
    """p = [f − τ]₊ for f(x) = −½(x − μ)ᵀΣ⁻¹(x − μ) and τ = −(π√|Σ|)^(−1/2) has S = Σ·(−2τ)/6."""
    mu, sigma = np.array([0.4, 0.6]), np.array(covariance(0.2, 0.1, 0.7))
    tau = -((np.pi * np.sqrt(np.linalg.det(sigma))) ** -0.5)
    points = np.random.default_rng(0).uniform(-0.5, 1.5, size=(2000, 2))
    offset = points - mu
    f = -0.5 * np.einsum("pi,ij,pj->p", offset, np.linalg.inv(sigma), offset)
    published = np.maximum(f - tau, 0)
    ours = paraboloids([1.0], [mu.tolist()], [(sigma * -2 * tau / 6).tolist()])
    np.testing.assert_allclose(ours.density(torch.tensor(points))[0, 0], published, atol=1e-9)
    assert 0.1 < (published > 0).mean() < 0.9


def heads_of_both_densities(name, **options):
    families = ("gaussian", "paraboloid")
    return [attention.build(name, density=density, **options) for density in families]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", ["unimodal", "multimodal"])
def test_only_the_context_and_the_density_differ_from_the_gaussian_head(name, training):
    grid = attention.Grid.of([(8, 10), (10, 8), (3, 4)])
    scores = smooth_weights(3, grid, temperature=4.0).clamp_min(1e-20).log()
    values = torch.randn(3, grid.num_cells, 4, dtype=torch.double)
    options = {"lam": 0.5} if name == "multimodal" else {}
    gaussian, paraboloid = (
        head.train(training)(scores, values, grid, step=5)
        for head in heads_of_both_densities(name, **options)
    )
    pairs = [(gaussian.mixture, paraboloid.mixture)]
    if name == "multimodal" and not training:
        ours, theirs = paraboloid.candidates, gaussian.candidates
        assert torch.equal(ours.log_likelihood, theirs.log_likelihood)
        assert torch.equal(ours.select(0.1), theirs.select(0.1))
        assert (gaussian.mixture.num_components > 1).any()
        assert isinstance(ours.mixture_of(ours.select(0.1)), attention.ParaboloidMixture)
        assert not torch.allclose(ours.context, theirs.context, atol=1e-3)
        pairs.append((theirs.mixture, ours.mixture))
    for first, second in pairs:
        for field in ("pi", "mu", "sigma", "num_components"):
            assert torch.equal(getattr(first, field), getattr(second, field))
        assert (first.support, second.support) == (None, 6.0)
    assert not torch.allclose(gaussian.context, paraboloid.context, atol=1e-3)


def test_parts_of_a_mixture_stay_paraboloids():
    grid = attention.Grid.of([(5, 6), (6, 5)])
    fitted = attention.fit_mixture(smooth_weights(2, grid), grid, random_means(2, 3), 4)
    density = attention.ParaboloidMixture(fitted.pi, fitted.mu, fitted.sigma, fitted.num_components)
    for part in (
        density.images(slice(1)),
        density.to("cpu"),
        density.restarts(torch.zeros(2, 1).long()),
    ):
        assert isinstance(part, attention.ParaboloidMixture)
    points = torch.rand(2, 7, 2, dtype=torch.float64)
    torch.testing.assert_close(
        density.density(points)[1:], density.images(slice(1, 2)).density(points[1:])
    )


def test_an_unknown_density_is_named_in_one_sentence():
    with pytest.raises(ValueError, match="density must be one of gaussian, paraboloid, not 'cone'"):
        attention.build("unimodal", density="cone")
