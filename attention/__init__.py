"""Discrete, unimodal and multimodal continuous attention over the cells of an image.

head = attention.build("multimodal", k_max=4, lam=5.0).eval()
out = head(scores, values, attention.Grid.of([(19, 32)]))
"""

from attention.candidates import Candidates
from attention.continuous import ContinuousHead, UnimodalHead
from attention.discrete import DiscreteHead
from attention.em import fit_mixture, log_likelihood
from attention.grid import Grid
from attention.head import AttentionOutput, Head, without_autocast
from attention.mixture import Mixture
from attention.moments import moment_match
from attention.multimodal import MultimodalHead
from attention.registry import available, build, register

__all__ = [
    "AttentionOutput",
    "Candidates",
    "ContinuousHead",
    "DiscreteHead",
    "Grid",
    "Head",
    "Mixture",
    "MultimodalHead",
    "UnimodalHead",
    "available",
    "build",
    "fit_mixture",
    "log_likelihood",
    "moment_match",
    "register",
    "without_autocast",
]
