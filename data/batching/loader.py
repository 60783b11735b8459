"""From questions to tensors: threads copy features from the store into a ring of reused buffers."""

import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from data.batching.batch import Batch, FeatureBuffer
from data.batching.examples import Examples
from data.batching.sampler import MicroBatch
from data.features.store_set import StoreSet

TASK_BYTES = 2 << 20  # a thread is worth waking for about this much to copy


class Loader:
    """Reads batches ahead of the consumer; memory is the ring's, whatever the size of the stores.

    `share_images` reads each image once for all its questions (evaluation). `prefetch` batches are
    read ahead, the last `keep` drawn stay valid. `num_threads=0` reads in the consumer's thread.
    `read_ahead` asks the system for all pages of a batch before copying, which pays when they come
    from disk and costs a fifth when they are in memory; None does so for stores too large to stay.
    """

    def __init__(
        self,
        stores: StoreSet,
        examples: Examples,
        num_answers: int,
        *,
        share_images: bool = False,
        num_threads: int = 2,
        prefetch: int = 2,
        keep: int = 1,
        pin: bool = False,
        read_ahead: bool | None = None,
    ) -> None:
        if num_threads < 0:
            raise ValueError(f"num_threads is {num_threads}, expected at least 0")
        if prefetch < 1 or keep < 1:
            raise ValueError(f"prefetch is {prefetch} and keep {keep}, expected at least 1 each")
        self.stores, self.examples, self.num_answers = stores, examples, num_answers
        self.share_images, self.pin = share_images, pin
        self.num_threads, self.prefetch = num_threads, prefetch
        self.read_ahead = stores.exceeds_memory() if read_ahead is None else read_ahead
        self.places = stores.positions(examples.image_ids)  # (Q,), raises for a missing image
        self.ring = [FeatureBuffer(stores.dtype, pin) for _ in range(prefetch + keep)]
        self.num_drawn = 0  # batches, over all iterations: what was drawn last stays valid
        self.busy = False

    @property
    def shapes(self) -> np.ndarray:
        """The grid (Q, 2) of every question's image."""
        return np.stack([self.stores.heights[self.places], self.stores.widths[self.places]], axis=1)

    def iterate(self, micro_batches: Sequence[MicroBatch]) -> Iterator[Batch]:
        """Yield the batch of each micro-batch in order; leaving early ends the threads."""
        if self.busy:
            raise ValueError("this loader is being iterated already; make a second one")
        self.stores.check()
        self.reserve(micro_batches)
        pool = ThreadPoolExecutor(self.num_threads, "loader") if self.num_threads else None
        pending: deque[PendingBatch] = deque()
        self.busy = True
        try:
            for number, micro_batch in enumerate(micro_batches, self.num_drawn):
                buffer = self.ring[number % len(self.ring)]
                pending.append(PendingBatch(self, micro_batch, buffer, pool))
                if len(pending) > (self.prefetch if pool else 0):
                    yield self.draw(pending)
            while pending:
                yield self.draw(pending)
        finally:
            if pool is not None:
                pool.shutdown(wait=True, cancel_futures=True)
            self.busy = False

    def draw(self, pending: "deque[PendingBatch]") -> Batch:
        """Return the next batch, and count it."""
        self.num_drawn += 1
        return pending.popleft().finish()

    def reserve(self, micro_batches: Sequence[MicroBatch]) -> None:
        """Make every buffer large enough for any of the batches, so that none grows on the way."""
        num_images = max((len(self.images_of(each)[0]) for each in micro_batches), default=0)
        num_cells = int((self.stores.heights * self.stores.widths).max())
        for buffer in self.ring:
            buffer.reserve(num_images * num_cells * self.stores.num_features)

    def images_of(self, micro_batch: MicroBatch) -> tuple[np.ndarray, np.ndarray | None]:
        """Where the images (i,) to read are in the stores, and each question's (b,) if shared."""
        places = self.places[micro_batch.rows]
        return np.unique(places, return_inverse=True) if self.share_images else (places, None)

    def to_tensor(self, array: np.ndarray) -> Tensor:
        """Make a small array a tensor, pinned when the loader pins."""
        tensor: Tensor = torch.from_numpy(array)
        return tensor.pin_memory() if self.pin else tensor


class PendingBatch:
    """One batch whose features are being copied."""

    def __init__(
        self,
        loader: Loader,
        micro_batch: MicroBatch,
        buffer: FeatureBuffer,
        pool: ThreadPoolExecutor | None,
    ) -> None:
        self.loader, self.micro_batch, self.buffer = loader, micro_batch, buffer
        stores = loader.stores
        places, index = loader.images_of(micro_batch)
        self.image_index = None if index is None else loader.to_tensor(index)
        self.places = places.tolist()
        heights, widths = stores.heights[places].tolist(), stores.widths[places].tolist()
        self.sizes = tuple(zip(heights, widths, strict=True))
        length = max(height * width for height, width in self.sizes)
        self.features = buffer.take(len(self.places), length, stores.num_features)
        self.array = stores.dtype.to_array(self.features)
        self.tasks = self.start(pool)

    def start(self, pool: ThreadPoolExecutor | None) -> list[Future[None]]:
        """Copy the images, spread over the threads, or at once without them."""
        count = len(self.places)
        if pool is None:
            self.copy(0, count)
            return []
        num_tasks = min(count, self.loader.num_threads, 1 + self.array.nbytes // TASK_BYTES)
        bounds = [count * n // num_tasks for n in range(num_tasks + 1)]
        return [pool.submit(self.copy, start, stop) for start, stop in itertools.pairwise(bounds)]

    def copy(self, start: int, stop: int) -> None:
        """Copy images start to stop into the buffer, zeros after the cells of smaller grids."""
        stores = self.loader.stores
        if self.loader.read_ahead:
            for n in range(start, stop):
                stores.advise(self.places[n])
        for n in range(start, stop):
            height, width = self.sizes[n]
            rows = self.array[n]
            try:
                stores.copy_rows(self.places[n], rows[: height * width])
            except Exception as error:
                image_id = stores.image_ids[self.places[n]]
                raise ValueError(f"image {image_id} could not be read: {error}") from error
            if height * width < len(rows):
                rows[height * width :] = 0

    def finish(self) -> Batch:
        """Wait for the images and give the batch."""
        for task in self.tasks:
            task.result()
        loader, rows = self.loader, self.micro_batch.rows
        examples, targets = loader.examples, None
        if examples.has_answers:
            targets = loader.to_tensor(examples.dense_targets(rows, loader.num_answers))
        return Batch(
            features=self.features,
            sizes=self.sizes,
            image_index=self.image_index,
            tokens=loader.to_tensor(examples.tokens[rows]),
            targets=targets,
            question_ids=loader.to_tensor(examples.question_ids[rows]),
            image_ids=loader.to_tensor(examples.image_ids[rows]),
            weight=self.micro_batch.weight,
            buffer=self.buffer,
        )
