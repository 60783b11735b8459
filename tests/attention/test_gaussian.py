"""log N(x; μ, Σ) as a polynomial, and its hand-written gradient, against torch's own Gaussian."""

import torch
from torch.distributions import MultivariateNormal

from attention.densities.gaussian import log_gaussian, monomials


def random_gaussians(*shape, seed=0):
    """Means, lower Cholesky factors with entries (a, b, d), and log scales, all to be varied."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*size):
        return torch.rand(*shape, *size, generator=generator, dtype=torch.float64)

    factors = 0.1 + draw(3)
    return tuple(each.requires_grad_() for each in (draw(2), factors, draw()))


def covariances(factors):
    a, b, d = factors.unbind(-1)
    return torch.stack([a * a, a * b, a * b, b * b + d * d], -1).unflatten(-1, (2, 2))


def coefficients(mu, factors, log_scale):
    return log_gaussian(mu, covariances(factors), log_scale)


def test_values_and_gradients_are_those_of_torchs_gaussian():
    inputs = mu, factors, log_scale = random_gaussians(2, 3, 4)
    points = torch.rand(50, 2, dtype=torch.float64)
    upstream = torch.randn(2, 3, 4, 50, dtype=torch.float64)
    ours = coefficients(*inputs) @ monomials(points).mT
    reference = MultivariateNormal(mu, covariances(factors)).log_prob(points.view(50, 1, 1, 1, 2))
    theirs = reference.permute(1, 2, 3, 0) + log_scale[..., None]
    assert torch.allclose(ours, theirs, atol=1e-10, rtol=0)
    for own, other in zip(
        torch.autograd.grad(ours, inputs, upstream),
        torch.autograd.grad(theirs, inputs, upstream),
        strict=True,
    ):
        assert torch.allclose(own, other, rtol=1e-9)


def test_the_gradient_of_every_coefficient_is_the_limit_of_differences():
    assert torch.autograd.gradcheck(coefficients, random_gaussians(2, 1, 3, seed=1))


def test_without_a_scale_the_gradient_is_the_same():
    mu, factors, log_scale = random_gaussians(1, 1, 2)
    plain = log_gaussian(mu, covariances(factors))
    scaled = coefficients(mu, factors, log_scale)
    for own, other in zip(
        torch.autograd.grad(plain.sum(), (mu, factors)),
        torch.autograd.grad(scaled.sum(), (mu, factors)),
        strict=True,
    ):
        assert torch.equal(own, other)
