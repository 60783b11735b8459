"""From a data config to what a model reads: examples, stores and loaders of a split."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from omegaconf import DictConfig

from data.examples import Examples, load_examples
from data.loader import Loader
from data.splits import Folder
from data.store_set import StoreSet, open_stores
from data.words import USUAL_THRESHOLD, Words, prepare_words


@dataclass(frozen=True)
class Split:
    """The questions of a split and the stores that hold their images."""

    examples: Examples
    stores: StoreSet

    def loader(self, words: Words, runtime: DictConfig, pin: bool, share_images: bool) -> Loader:
        """A loader with the runtime's settings; evaluation shares images."""
        return Loader(
            self.stores,
            self.examples,
            len(words.answers),
            share_images=share_images,
            num_threads=runtime.loader_threads,
            keep=max(2, runtime.micro_batches + 1),
            pin=pin,
        )

    @property
    def shapes(self) -> np.ndarray:
        """(Q, 2): the grid of every question's image."""
        return self.stores.shapes(self.examples.image_ids)


def ensure_dataset(config: DictConfig) -> None:
    """Make `shapes` where it is not there yet; other datasets must be."""
    if config.name == "shapes":
        from data.shapes.build import build_shapes

        build_shapes(Path(config.root), config.seed, num_workers=config.num_workers)
    elif not config.root:
        raise ValueError(f"data={config.name} needs the folder of your data: data.root=…")
    elif not Path(config.root).is_dir():
        own = config.name == "custom"
        how = "give your folder with data.root=…" if own else f"run make data DATA={config.name}"
        raise ValueError(f"there is no data in {config.root}: {how}")


def load_words(config: DictConfig) -> Words:
    """The folder's vocabulary and answers, built on first use."""
    more_than = config.get("answers_more_than", USUAL_THRESHOLD)
    return prepare_words(Folder(config.root), more_than)


def open_split(config: DictConfig, split: str, words: Words, runtime: DictConfig) -> Split:
    """Read the questions of a split and open its stores."""
    folder = Folder(config.root)
    stores = open_stores(folder.stores(split), runtime.reader, runtime.stage_to)
    return Split(load_examples(folder, split, words.vocabulary, words.answers), stores)
