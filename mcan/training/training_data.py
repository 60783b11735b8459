"""The questions that a run is trained on: this process's micro-batches of every step."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from data.batching.batch import Batch
from data.batching.device_copies import copy_ahead
from data.batching.examples import load_examples
from data.batching.loader import Loader
from data.batching.sampler import TrainingSampler
from data.features.manifest import Manifest
from data.features.store_set import StoreSet, open_stores
from data.text.word_lists import Words
from data.vqa.data_folder import DataFolder
from mcan.runtime.distributed import World
from mcan.runtime.loader_threads import choose_loader_threads
from mcan.training.settings import TrainingSettings


@dataclass(frozen=True)
class TrainingData:
    """Loader and sampler of the training questions."""

    loader: Loader
    sampler: TrainingSampler
    world: World
    num_micro_batches: int

    @property
    def manifest(self) -> Manifest:
        """The manifest of the first feature store; the others are like it."""
        return self.loader.stores.stores[0].manifest

    @property
    def checksum(self) -> str:
        """Of the questions, their words and answers, and the grids of their images."""
        examples = self.loader.examples
        checksum = zlib.crc32(examples.target_scores.astype("<f4").tobytes())
        for array in (
            examples.question_ids,
            examples.image_ids,
            examples.tokens,
            examples.target_offsets,
            examples.target_indices,
            self.loader.shapes,
        ):
            checksum = zlib.crc32(array.astype("<i8").tobytes(), checksum)
        return f"{checksum:08x}"

    def check_same(self, checkpoint: Mapping[str, Any]) -> None:
        """Raise when a checkpoint is of a run on other questions; older ones do not say."""
        if checkpoint.get("questions_checksum") not in (None, self.checksum):
            raise ValueError(
                "the run to resume was started with other training questions or answers, or with "
                "features on other grids; give it the same data, or another name=…"
            )

    def check_alike(self, validation: StoreSet) -> None:
        """Raise when validation features are of another kind than those that are trained on."""
        store = validation.stores[0]
        store.manifest.check_alike(store.path, self.manifest, self.loader.stores.stores[0].path)

    def batches(self, epoch: int, first_step: int) -> Iterator[Sequence[Batch]]:
        """The micro-batches of each step of an epoch, from a step within it on."""
        world, number = self.world, self.num_micro_batches
        micro_batches = self.sampler.micro_batches(
            epoch, first_step, world.rank, world.size, number
        )
        step: list[Batch] = []
        for batch in copy_ahead(self.loader.iterate(micro_batches), world.device, keep=number):
            step.append(batch)
            if len(step) == number:
                yield step
                step = []

    def find_bad_features(self, question_ids: Sequence[int]) -> str | None:
        """Where the features of these questions' images hold a NaN or an infinity."""
        examples = self.loader.examples
        asked = np.isin(examples.question_ids, question_ids)
        return self.loader.stores.find_bad_row(examples.image_ids[asked])


def open_training_data(
    settings: TrainingSettings, folder: DataFolder, words: Words, world: World
) -> TrainingData:
    """The training split: its questions, its features, and which of them make a batch."""
    runtime, split = settings.runtime, settings.train_split
    stores = open_stores(folder.training_stores(split), runtime.reader, runtime.stage_to)
    loader = Loader(
        stores,
        load_examples(folder, split, words),
        len(words.answers),
        share_images=settings.optim.share_images,
        num_threads=choose_loader_threads(runtime, stores.image_bytes),
        keep=runtime.micro_batches + 1,
        pin=world.device.type == "cuda",
    )
    sampler = TrainingSampler(
        loader.shapes,
        settings.optim.batch_size,
        settings.seed,
        runtime.mixing,
        runtime.limit_batches,
        loader.examples.image_ids if settings.optim.share_images else None,
    )
    return TrainingData(loader, sampler, world, runtime.micro_batches)
