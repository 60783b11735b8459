"""MCAN: the network that answers, whose attention over the image is pluggable."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcan.network.model import MCAN, Sizes, count_parameters, set_embeddings
    from mcan.published.weights import from_published

__all__ = ["MCAN", "Sizes", "count_parameters", "from_published", "set_embeddings"]


def __getattr__(name: str) -> Any:
    """Import torch only for the network: a command that starts others does without."""
    if name == "from_published":
        from mcan.published.weights import from_published

        return from_published
    if name in __all__:
        from mcan.network import model

        return getattr(model, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
