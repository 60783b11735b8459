"""MCAN: the network that answers, whose attention over the image is pluggable."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcan.network.model import MCAN, Sizes, count_parameters, set_embeddings
    from mcan.published.weights import from_published

__all__ = ["MCAN", "Sizes", "count_parameters", "from_published", "set_embeddings"]


def __getattr__(name: str) -> Any:
    """Import torch only for the network: a command that starts others does without."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    place = "mcan.published.weights" if name == "from_published" else "mcan.network.model"
    return getattr(importlib.import_module(place), name)
