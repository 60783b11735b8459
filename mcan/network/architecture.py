"""From sizes to a network: what configs/model sets, and the numbers that the data decides."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated

from torch import Tensor

from attention import Head
from mcan.network.model import MCAN, Sizes

Count = Annotated[int, ">= 1"]


@dataclass(frozen=True)
class Architecture:
    """The sizes that a config chooses: those of configs/model/*.yaml."""

    embedding: Count = 300
    hidden: Count = 512
    num_layers: Count = 6
    num_heads: Count = 8
    pooling: Count = 512
    output: Count = 1024
    dropout: Annotated[float, ">= 0 and < 1"] = 0.1

    def __post_init__(self) -> None:
        if self.hidden % self.num_heads:
            raise ValueError(
                f"num_heads must divide hidden={self.hidden} evenly, not {self.num_heads}"
            )


def build_model(
    architecture: Architecture, head: Head, *, num_words: int, num_answers: int, num_features: int
) -> MCAN:
    """The network for the data's numbers of words, answers and features per cell."""
    chosen = {each.name: getattr(architecture, each.name) for each in fields(Architecture)}
    dropout = chosen.pop("dropout")
    return MCAN(Sizes(num_words, num_answers, num_features, **chosen), head, dropout)


def load_weights(model: MCAN, weights: Mapping[str, Tensor], owner: str) -> None:
    """Fill in weights; those of another architecture raise an error that names their owner."""
    try:
        model.load_state_dict(weights)
    except RuntimeError:
        sizes = ", ".join(f"{name} {value}" for name, value in vars(model.sizes).items())
        raise ValueError(
            f"{owner} has another architecture: its weights do not fit a model of {sizes}"
        ) from None
