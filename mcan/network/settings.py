"""The sizes that a config chooses: those of configs/model/*.yaml."""

from dataclasses import dataclass
from typing import Annotated

Count = Annotated[int, ">= 1"]


@dataclass(frozen=True)
class Architecture:
    """The sizes of a network, whatever the data."""

    embedding: Count = 300
    hidden: Count = 512
    num_layers: Count = 6
    num_heads: Count = 8
    pooling: Count = 512
    output: Count = 1024
    dropout: Annotated[float, ">= 0 and < 1"] = 0.1
    pca: Annotated[int, ">= 0"] = 0

    def __post_init__(self) -> None:
        if self.hidden % self.num_heads:
            raise ValueError(
                f"num_heads must divide hidden={self.hidden} evenly, not {self.num_heads}"
            )
