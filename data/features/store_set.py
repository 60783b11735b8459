"""Several feature stores seen as one: what `train+val` reads."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from data.features.reader import FeatureStore, find_places
from data.features.staging import stage_store
from data.io.memory import usable_memory


class StoreSet:
    """Stores of the same kind; image ids (n,) ascending over all of them.

    An image may be in several, as when custom splits share it, if its rows are the same in all.
    """

    def __init__(self, stores: Sequence[FeatureStore]) -> None:
        if not stores:
            raise ValueError("at least one feature store is needed")
        self.stores = list(stores)
        first = stores[0]
        for store in stores[1:]:
            kind = first.manifest
            store.manifest.require(
                store.path, kind.backbone, kind.resize, kind.num_features, kind.dtype, kind.cells
            )
        self.num_features, self.dtype = first.num_features, first.dtype
        self.is_grid = first.manifest.is_grid
        ids = np.concatenate([store.image_ids for store in stores])
        checksums = np.concatenate([store.checksums for store in stores])
        order = np.argsort(ids, kind="stable")
        again = np.concatenate([[False], np.diff(ids[order]) == 0])
        differs = again & np.concatenate([[False], np.diff(checksums[order].astype(np.int64)) != 0])
        if differs.any():
            image_id = ids[order][differs][0]
            raise ValueError(f"image {image_id} has different features in {self.names()}")
        order = order[~again]
        self.image_ids = ids[order]
        numbers = [np.full(len(store), n) for n, store in enumerate(stores)]
        self.numbers = np.concatenate(numbers)[order]
        self.places = np.concatenate([np.arange(len(store)) for store in stores])[order]
        self.heights = np.concatenate([store.heights for store in stores])[order]
        self.widths = np.concatenate([store.widths for store in stores])[order]

    @property
    def image_bytes(self) -> float:
        """The bytes of an image's features, on average."""
        num_cells = float((self.heights * self.widths).mean()) if len(self.image_ids) else 0.0
        return num_cells * self.stores[0].row_bytes

    def names(self) -> str:
        return ", ".join(str(store.path) for store in self.stores)

    def positions(self, image_ids: np.ndarray) -> np.ndarray:
        """Where each image (n,) stands in `image_ids`; raise when one is in no store."""
        places = find_places(self.image_ids, image_ids)
        missing = np.unique(image_ids[places < 0])
        if len(missing):
            raise ValueError(
                f"{len(missing)} images are not in {self.names()}, the first is {missing[0]}; "
                "make a store that has the features of every image, or remove their questions"
            )
        return places

    def shapes(self, image_ids: np.ndarray) -> np.ndarray:
        """The grids (n, 2), height and width, of images (n,)."""
        places = self.positions(image_ids)
        return np.stack([self.heights[places], self.widths[places]], axis=1)

    def boxes(self, image_id: int) -> np.ndarray | None:
        """The boxes (L, 4) of an image's regions, x1, y1, x2, y2 from 0 to 1; None of a grid."""
        place = int(self.positions(np.array([image_id]))[0])
        store: FeatureStore = self.stores[self.numbers[place]]
        boxes = store.view_boxes(int(self.places[place]))
        if boxes is not None and np.isnan(boxes).any():
            raise ValueError(
                f"{store.path} does not say where the regions of image {image_id} are: the file "
                "that they are from had no image_w and image_h"
            )
        return boxes

    def require_grid(self, purpose: str) -> None:
        """Raise for regions, whose heights and widths say nothing about places in the image."""
        if not self.is_grid:
            raise ValueError(
                f"{self.names()} holds regions, which form no grid over the image, and {purpose}"
            )

    def copy_rows(self, place: int, out: np.ndarray) -> None:
        """Copy the rows of the image at a position into `out` (L, F)."""
        self.stores[self.numbers[place]].copy_rows(int(self.places[place]), out)

    def advise(self, place: int) -> None:
        """Ask the system to fetch the pages of the image at a position."""
        self.stores[self.numbers[place]].advise(int(self.places[place]))

    def find_bad_row(self, image_ids: np.ndarray) -> str | None:
        """Name the first row, by image, that has a number that is not finite; None without one."""
        for place in self.positions(np.unique(image_ids)).tolist():
            store: FeatureStore = self.stores[self.numbers[place]]
            row = self.dtype.find_bad_row(store.rows(int(self.image_ids[place])))
            if row is not None:
                return f"row {row} of image {self.image_ids[place]} in {store.path}"
        return None

    def exceeds_memory(self) -> bool:
        """True when the files are too large to stay in the page cache."""
        return sum(store.header.file_bytes for store in self.stores) > usable_memory() // 2

    def check(self) -> None:
        """Raise when one of the files was changed or cut since it was opened."""
        for store in self.stores:
            store.check()

    def close(self) -> None:
        """Let go of all files."""
        for store in self.stores:
            store.close()


def open_stores(
    paths: Sequence[str | Path],
    reader: str = "mmap",
    stage_to: str | Path | None = None,
) -> StoreSet:
    """Open stores as one, from copies in the node-local folder `stage_to` when it is given."""
    if stage_to is not None:
        paths = [stage_store(path, stage_to) for path in paths]
    return StoreSet([FeatureStore(path, reader) for path in paths])
