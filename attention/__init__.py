"""Discrete, unimodal and multimodal continuous attention over the cells of an image.

head = attention.build("multimodal", k_max=4, lam=5.0).eval()
out = head(scores, values, attention.Grid.of([(19, 32)]))
"""

from attention.densities.density import Density
from attention.densities.mixture import Mixture
from attention.densities.paraboloid import ParaboloidMixture
from attention.em import fit_mixture, log_likelihood
from attention.grid import Grid
from attention.heads.continuous import ContinuousHead, UnimodalHead
from attention.heads.discrete import DiscreteHead
from attention.heads.head import AttentionOutput, Head, without_autocast
from attention.heads.multimodal import MultimodalHead
from attention.heads.registry import available, build, register
from attention.moments import moment_match
from attention.selection import Candidates

__all__ = [
    "AttentionOutput",
    "Candidates",
    "ContinuousHead",
    "Density",
    "DiscreteHead",
    "Grid",
    "Head",
    "Mixture",
    "MultimodalHead",
    "ParaboloidMixture",
    "UnimodalHead",
    "available",
    "build",
    "fit_mixture",
    "log_likelihood",
    "moment_match",
    "register",
    "without_autocast",
]
