"""What a training run takes of its settings: the names are the keys of configs/train.yaml."""

from dataclasses import dataclass, field
from typing import Annotated, Any

from data.settings import Data
from mcan.network.settings import Architecture
from mcan.runtime.settings import Count, CountOrZero, Runtime

Share = Annotated[float, ">= 0 and < 1"]
Positive = Annotated[float, "> 0"]


@dataclass(frozen=True, kw_only=True)
class Optim:
    """configs/optim: how long, in which batches and how fast a run learns."""

    epochs: Count
    batch_size: Count
    betas: tuple[Share, Share]
    epsilon: Positive
    clip: Positive | None
    rate: dict[str, Any]
    share_images: bool = False
    answer_prior: bool = False


@dataclass(frozen=True)
class TrainingRuntime(Runtime):
    """How a run takes place on its machine, with two settings for trying it out."""

    limit_batches: Count | None = None
    profile: CountOrZero = 0


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """All that decides what a run learns, and how it is followed."""

    data: Data
    model: Architecture
    attention: dict[str, Any]  # the head's name and options
    optim: Optim
    runtime: TrainingRuntime
    seed: Annotated[int, ">= 0 and < 2^63"]
    init_from: str | None
    train_split: str
    val_split: str
    glove: str | None  # null and "none" are none
    tracker: list[str]
    # all settings as Hydra composed them: what config.yaml and checkpoints keep
    composed: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def word_vectors(self) -> str | None:
        """The file that the embeddings start from; weights of another model have their own."""
        return None if self.init_from or self.glove == "none" else self.glove
