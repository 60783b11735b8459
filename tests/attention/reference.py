"""The paper's Algorithm 1 once more, as loops over NumPy scalars: the oracle of the tests."""

import numpy as np


def centres(height, width):
    return np.array(
        [[(i + 0.5) / height, (j + 0.5) / width] for i in range(height) for j in range(width)]
    )


def gaussian(x, mu, sigma):
    difference = np.asarray(x) - np.asarray(mu)
    exponent = -0.5 * difference @ np.linalg.inv(sigma) @ difference
    return np.exp(exponent) / (2 * np.pi * np.sqrt(np.linalg.det(sigma)))


def weighted_em(points, weights, means, iterations, floor=1e-6):
    """WeightedEM: points (L, 2), weights (L,), means (K, 2) -> π (K,), μ (K, 2), Σ (K, 2, 2)."""
    num_components = len(means)
    pi = np.full(num_components, 1 / num_components)
    mu = np.array(means, dtype=float)
    sigma = np.stack([0.001 * np.eye(2)] * num_components)
    for _ in range(iterations):
        gamma = np.zeros((len(points), num_components))
        for cell, x in enumerate(points):
            joint = np.array(
                [pi[k] * gaussian(x, mu[k], sigma[k]) for k in range(num_components)],
                dtype=np.longdouble,
            )
            gamma[cell] = joint / joint.sum()
        for k in range(num_components):
            pi[k] = sum(weights[cell] * gamma[cell, k] for cell in range(len(points)))
            if pi[k] <= 1e-12:
                continue  # a component without mass stays where it is
            mu[k] = (
                sum(weights[cell] * gamma[cell, k] * points[cell] for cell in range(len(points)))
                / pi[k]
            )
            scatter = sum(
                weights[cell]
                * gamma[cell, k]
                * np.outer(points[cell] - mu[k], points[cell] - mu[k])
                for cell in range(len(points))
            )
            sigma[k] = scatter / pi[k] + floor * np.eye(2)
    return pi, mu, sigma


def log_likelihood(points, weights, pi, mu, sigma):
    return sum(
        w * np.log(sum(pi[k] * gaussian(x, mu[k], sigma[k]) for k in range(len(pi))))
        for x, w in zip(points, weights, strict=True)
    )


def basis_centres(num_basis=100):
    side = np.linspace(0, 1, int(np.sqrt(num_basis)))
    return np.array([[a, b] for a in side for b in side])


def coefficients(values, points, ridge=0.01, variance=0.001):
    """B (D, N): ridge regression of values (L, D) on the basis at the points, by least squares."""
    centre, covariance = basis_centres(), variance * np.eye(2)
    design = np.array([[gaussian(x, c, covariance) for c in centre] for x in points])  # (L, N)
    stacked = np.vstack([design, np.sqrt(ridge) * np.eye(len(centre))])
    target = np.vstack([values, np.zeros((len(centre), values.shape[1]))])
    return np.linalg.lstsq(stacked, target, rcond=None)[0].T


def context(coefficient, pi, mu, sigma, variance=0.001):
    """c = Σ_k π_k B r_k with r_kj = N(μ_k; μ̃_j, Σ_k + Σ̃_j)."""
    centre = basis_centres()
    total = 0
    for k in range(len(pi)):
        r = np.array([gaussian(mu[k], c, sigma[k] + variance * np.eye(2)) for c in centre])
        total = total + pi[k] * coefficient @ r
    return total
