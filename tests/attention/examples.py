"""Weights and mixtures that the attention tests share."""

import inspect
from itertools import product
from typing import get_args, get_type_hints

import numpy as np
import pytest
import torch

import attention
from attention.heads import registry

VARIED = ("normaliser", "density")


def head_variants(names=None):
    """(name, options) of every head with every choice of the options in VARIED that it has.

    Heads, options and choices come from the registry and the constructors' own types, so that a
    new one is covered wherever this is used. Choices that are the default are left out.
    """
    return [
        (name, dict(chosen))
        for name in names or attention.available()
        for chosen in product_of_choices(registry.find(name))
    ]


def product_of_choices(head):
    parameters, types = inspect.signature(head).parameters, get_type_hints(head.__init__)
    choices = [
        [(option, choice) for choice in get_args(types[option])]
        for option in VARIED
        if option in parameters
    ]
    for chosen in product(*choices):
        yield [(name, choice) for name, choice in chosen if choice != parameters[name].default]


def name_variant(variant):
    """discrete, discrete-sparsemax, …: the id of a test's parameter."""
    name, options = variant
    return "-".join([name, *map(str, options.values())])


every_variant = pytest.mark.parametrize("variant", head_variants(), ids=name_variant)


def iterate_twice(head):
    """Have EM do the first iteration and one like all that follow, where values do not matter."""
    for name in ("train_iterations", "test_iterations"):
        if hasattr(head, name):
            setattr(head, name, 2)
    return head


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
