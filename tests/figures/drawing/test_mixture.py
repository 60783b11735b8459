"""The density and the ellipses that are drawn, against other ways to get them."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from attention import Mixture
from figures.drawing.mixture import DrawnMixture
from tests.figures.drawing.sample_panels import make_mixture


@pytest.mark.parametrize("num_components", [1, 2, 4])
@pytest.mark.parametrize("shape", [(40, 30), (17, 50)])
def test_the_density_is_that_of_scipy_at_the_centres_of_the_pixels(num_components, shape):
    mixture = make_mixture(num_components)
    drawn = mixture.at_pixels(*shape)
    for row, column in [(0, 0), (3, 7), (shape[0] - 1, shape[1] - 1), (16, 20)]:
        place = [(row + 0.5) / shape[0], (column + 0.5) / shape[1]]
        expected = sum(
            pi * multivariate_normal(mu, sigma).pdf(place)
            for pi, mu, sigma in zip(mixture.pi, mixture.mu, mixture.sigma, strict=True)
        )
        assert drawn[row, column] == pytest.approx(expected, rel=1e-9)


def test_the_density_is_the_one_that_the_attention_has():
    mixture = make_mixture(3)
    height, width = 24, 36
    ours = Mixture(
        *(torch.from_numpy(a)[None, None] for a in (mixture.pi, mixture.mu, mixture.sigma)),
        torch.tensor([[3]]),
    )
    points = [((i + 0.5) / height, (j + 0.5) / width) for i in range(height) for j in range(width)]
    expected = ours.density(torch.tensor(points, dtype=torch.float64)).view(height, width)
    np.testing.assert_allclose(mixture.at_pixels(height, width), expected.numpy(), rtol=1e-9)


@pytest.mark.parametrize("num_components", [1, 3])
def test_a_paraboloid_is_drawn_with_its_mass_and_covariance_and_ends_at_its_support(num_components):
    mixture = make_mixture(num_components, seed=2, support=6.0)
    mixture = replace(mixture, mu=0.35 + 0.3 * mixture.mu, sigma=mixture.sigma / 4)  # all inside
    height, width = 600, 800
    drawn = mixture.at_pixels(height, width)
    assert drawn.mean() == pytest.approx(1, abs=1e-4)
    rows, columns = (np.arange(height) + 0.5) / height, (np.arange(width) + 0.5) / width
    inside = np.zeros((height, width), dtype=bool)
    for k in range(num_components):
        offsets = np.stack(np.broadcast_arrays(rows[:, None], columns), -1) - mixture.mu[k]
        squared = np.einsum("hwi,ij,hwj->hw", offsets, np.linalg.inv(mixture.sigma[k]), offsets)
        inside |= squared < 6
        alone = mixture.component_at_pixels(k, height, width)
        covariance = np.einsum("hw,hwi,hwj->ij", alone, offsets, offsets) / alone.size
        np.testing.assert_allclose(covariance, mixture.sigma[k], atol=1e-5)
        centre = tuple((mixture.mu[k] * (height, width)).astype(int))
        peak = 1 / (3 * math.pi * math.sqrt(np.linalg.det(mixture.sigma[k])))
        assert alone[centre] == pytest.approx(peak, rel=1e-2)
    assert np.array_equal(drawn > 0, inside)
    assert 0 < inside.mean() < 1


def test_a_paraboloid_smaller_than_a_pixel_has_its_mass_in_the_pixel_of_its_mean():
    tiny = DrawnMixture(np.ones(1), np.array([[0.42, 0.9]]), 1e-8 * np.eye(2)[None], 6.0)
    drawn = tiny.at_pixels(10, 20)
    assert np.argwhere(drawn).tolist() == [[4, 18]]
    assert drawn.mean() == pytest.approx(1)
    outside = replace(tiny, mu=np.array([[0.42, 1.01]]))
    assert not outside.at_pixels(10, 20).any()


def test_gaussians_are_outlined_at_one_and_two_deviations_and_a_paraboloid_at_its_edge():
    assert make_mixture(1).outlined_deviations == (1, 2)
    assert make_mixture(1, support=6.0).outlined_deviations == (math.sqrt(6),)


def test_a_covariance_without_an_inverse_is_drawn_all_the_same():
    mixture = DrawnMixture(np.array([1.0]), np.array([[0.5, 0.5]]), np.zeros((1, 2, 2)))
    drawn = mixture.at_pixels(5, 5)
    assert np.isfinite(drawn).all()
    assert drawn.argmax() == 12


@pytest.mark.parametrize("deviations", [1, 2, math.sqrt(6)])
@pytest.mark.parametrize("shape", [(480, 640), (640, 300)])
def test_every_point_of_an_ellipse_lies_so_many_deviations_from_the_mean(deviations, shape):
    mixture, (height, width) = make_mixture(3, seed=4), shape
    for k in range(3):
        at = mixture.outline(k, height, width, deviations)
        precision = np.linalg.inv(mixture.sigma[k])
        angle = math.radians(at.angle)
        for turn in np.linspace(0, 2 * math.pi, 13):
            along, across = at.width / 2 * math.cos(turn), at.height / 2 * math.sin(turn)
            x = at.x + along * math.cos(angle) - across * math.sin(angle)
            y = at.y + along * math.sin(angle) + across * math.cos(angle)
            offset = np.array([y / height, x / width]) - mixture.mu[k]  # back to the unit square
            assert math.sqrt(offset @ precision @ offset) == pytest.approx(deviations, rel=1e-9)
