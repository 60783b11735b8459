"""The questions that a run is trained on: this process's micro-batches of every step."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from data.batching.batch import Batch
from data.batching.loader import Loader
from data.batching.sampler import TrainingBatches
from data.features.manifest import Manifest
from mcan.runtime.distributed import World


@dataclass(frozen=True)
class TrainingData:
    """Loader and sampler of the training questions."""

    loader: Loader
    sampler: TrainingBatches
    world: World
    num_micro_batches: int

    @property
    def manifest(self) -> Manifest:
        """Of the first feature store; the others are like it."""
        return self.loader.stores.stores[0].manifest

    def batches(self, epoch: int, first_step: int) -> Iterator[Sequence[Batch]]:
        """The micro-batches of each step of an epoch, from a step within it on."""
        world, number = self.world, self.num_micro_batches
        micro_batches = self.sampler.micro_batches(
            epoch, first_step, world.rank, world.size, number
        )
        step: list[Batch] = []
        for batch in self.loader.iterate(micro_batches):
            step.append(batch)
            if len(step) == number:
                yield step
                step = []

    def find_bad_features(self, question_ids: Sequence[int]) -> str | None:
        """Where the features of these questions' images hold a NaN or an infinity."""
        examples = self.loader.examples
        asked = np.isin(examples.question_ids, question_ids)
        return self.loader.stores.find_bad_row(examples.image_ids[asked])
