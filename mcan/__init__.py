"""MCAN: the network that answers, whose attention over the image is pluggable."""

from mcan.network.model import MCAN, Sizes, count_parameters, set_embeddings
from mcan.published.weights import from_published

__all__ = ["MCAN", "Sizes", "count_parameters", "from_published", "set_embeddings"]
