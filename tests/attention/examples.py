"""Weights and mixtures that the attention tests share."""

import numpy as np
import torch

import attention


def smooth_weights(batch, grid, seed=0, temperature=2.0):
    """(B, L): softmax of seeded normal scores over the real cells."""
    generator = torch.Generator().manual_seed(seed)
    scores = temperature * torch.randn(
        batch, grid.num_cells, generator=generator, dtype=torch.float64
    )
    return scores.masked_fill(~grid.mask, -torch.inf).softmax(-1)


def blobs(height, width, centres, deviation, floor=0.0):
    """(1, L): round Gaussians at the given centres, taken at the cells, summing to 1."""
    points = attention.Grid.of([(height, width)]).positions[0].numpy()
    weights = sum(
        np.exp(-((points - c) ** 2).sum(1) / (2 * deviation**2)) for c in np.atleast_2d(centres)
    )
    weights = weights + floor
    return torch.tensor(weights / weights.sum())[None]


def random_means(restarts, components, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(restarts, components, 2, generator=generator, dtype=torch.float64)


def mixture(pi, mu, sigma):
    """A mixture with B = R = 1 from nested lists."""
    pi, mu, sigma = (torch.tensor(x, dtype=torch.float64)[None, None] for x in (pi, mu, sigma))
    return attention.Mixture(pi, mu, sigma, torch.tensor([[pi.shape[-1]]]))
