"""A split as a model reads it: its questions, and the stores that hold their images."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from data.batching.examples import Examples, load_examples
from data.batching.loader import Loader
from data.features.store_set import StoreSet, open_stores
from data.text.word_lists import Words
from data.vqa.data_folder import DataFolder


@dataclass(frozen=True)
class Split:
    """The questions of a split and the stores that hold their images."""

    examples: Examples
    stores: StoreSet

    def loader(
        self,
        words: Words,
        *,
        share_images: bool,
        num_threads: int = 2,
        micro_batches: int = 1,
        pin: bool = False,
    ) -> Loader:
        """What gives batches of it; evaluation shares images, training takes micro-batches."""
        return Loader(
            self.stores,
            self.examples,
            len(words.answers),
            share_images=share_images,
            num_threads=num_threads,
            keep=max(2, micro_batches + 1),
            pin=pin,
        )

    @property
    def shapes(self) -> np.ndarray:
        """(Q, 2): the grid of every question's image."""
        return self.stores.shapes(self.examples.image_ids)


def open_split(
    folder: DataFolder,
    split: str,
    words: Words,
    *,
    reader: str = "mmap",
    stage_to: str | Path | None = None,
) -> Split:
    """Open the stores of a split and read its questions."""
    stores = open_stores(folder.stores(split), reader, stage_to)
    return Split(load_examples(folder, split, words), stores)


def ensure_dataset(name: str, root: str | Path, seed: int = 0, num_workers: int = 2) -> None:
    """Draw the dataset `shapes` where it is not there yet; other datasets must be."""
    if name == "shapes":
        from data.shapes.build import build_shapes

        build_shapes(Path(root), seed, num_workers=num_workers)
    elif not root:
        raise ValueError(f"data={name} needs the folder of your data: data.root=…")
    elif not Path(root).is_dir():
        how = "give your folder with data.root=…"
        if name != "custom":
            how = f"run make data DATA={name}"
        raise ValueError(f"there is no data in {root}: {how}")
