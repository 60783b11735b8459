"""The density and the ellipses that are drawn, against other ways to get them."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from attention import Mixture
from figures.drawing.gaussians import Gaussians
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


def test_a_covariance_without_an_inverse_is_drawn_all_the_same():
    mixture = Gaussians(np.array([1.0]), np.array([[0.5, 0.5]]), np.zeros((1, 2, 2)))
    drawn = mixture.at_pixels(5, 5)
    assert np.isfinite(drawn).all()
    assert drawn.argmax() == 12


@pytest.mark.parametrize("deviations", [1, 2])
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
