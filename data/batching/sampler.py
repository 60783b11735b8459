"""Which questions form which batch: a function of seed, epoch and step, or of the split alone."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

MIXING = ("none", "leftovers", "all")


@dataclass(frozen=True)
class MicroBatch:
    """The questions one process computes at a time, a slice of a global batch.

    `weight` multiplies each question's loss: one over the size of the global batch, so that the
    micro-batches of all processes add up to its mean. When a global batch has fewer questions than
    micro-batches, those left over repeat one question with weight 0, so that every process takes
    part in every step.
    """

    rows: np.ndarray  # (b,) indices of questions
    weight: float


class TrainingSampler:
    """Global batches of one grid shape each; every question once per epoch.

    `shapes` (Q, 2) are the questions' grids. `mixing="leftovers"` joins what does not fill a batch
    of its shape into padded batches, `"all"` ignores shapes. With a `limit`, an epoch ends after
    so many batches. With `image_ids` (Q,), an image's questions follow each other. Nothing here has
    a state: a step is resumed by asking for it.
    """

    def __init__(
        self,
        shapes: np.ndarray,
        batch_size: int,
        seed: int,
        mixing: str = "none",
        limit: int | None = None,
        image_ids: np.ndarray | None = None,
    ) -> None:
        check_batching(batch_size, mixing)
        if len(shapes) == 0:
            raise ValueError("there are no questions to train on")
        self.batch_size, self.seed, self.mixing, self.limit = batch_size, seed, mixing, limit
        self.num_cells, self.image_ids = shapes.prod(axis=1), image_ids
        self.groups = [np.arange(len(shapes))] if mixing == "all" else group_rows(shapes)
        self.num_steps = len(self.plan(0))  # the same in every epoch

    def plan(self, epoch: int) -> list[np.ndarray]:
        """The question rows of every global batch of an epoch, in order."""
        generator = np.random.default_rng([self.seed, epoch])
        batches: list[np.ndarray] = []
        rest: list[np.ndarray] = []
        for group in self.groups:
            rows = generator.permutation(group)
            if self.image_ids is not None:
                rows = gather_images(rows, self.image_ids)
            for batch in chop(rows, self.batch_size):
                whole = len(batch) == self.batch_size or self.mixing != "leftovers"
                (batches if whole else rest).append(batch)
        if rest:
            left = np.concatenate(rest)
            # neighbours in size go together: less padding
            batches += chop(left[np.argsort(self.num_cells[left], kind="stable")], self.batch_size)
        return [batches[n] for n in generator.permutation(len(batches))[: self.limit]]

    def micro_batches(
        self,
        epoch: int,
        first_step: int = 0,
        rank: int = 0,
        world_size: int = 1,
        num_micro_batches: int = 1,
    ) -> list[MicroBatch]:
        """One process's micro-batches from `first_step` on, `num_micro_batches` for each step."""
        check_process(rank, world_size)
        if not 0 <= first_step <= self.num_steps:
            raise ValueError(f"first_step is {first_step}, expected 0 to {self.num_steps}")
        if num_micro_batches < 1:
            raise ValueError(f"num_micro_batches is {num_micro_batches}, expected at least 1")
        return [
            slice_rows(rows, rank * num_micro_batches + micro, world_size * num_micro_batches)
            for rows in self.plan(epoch)[first_step:]
            for micro in range(num_micro_batches)
        ]


def check_batching(batch_size: int, mixing: str) -> None:
    """Raise unless batches can be made of so many questions in this way."""
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}, expected at least 1")
    if mixing not in MIXING:
        raise ValueError(f"mixing is {mixing!r}, expected one of {', '.join(MIXING)}")


def check_process(rank: int, world_size: int) -> None:
    """Raise unless `rank` is one of `world_size` processes: the others' questions would be lost."""
    if world_size < 1:
        raise ValueError(f"world_size is {world_size}, expected at least 1")
    if not 0 <= rank < world_size:
        raise ValueError(f"rank is {rank}, expected 0 to {world_size - 1}")


def slice_rows(rows: np.ndarray, number: int, count: int) -> MicroBatch:
    """Part `number` of `count` nearly equal ones of a global batch (b,)."""
    start, stop = (len(rows) * n // count for n in (number, number + 1))
    if start == stop:
        return MicroBatch(rows[:1], 0.0)
    return MicroBatch(rows[start:stop], 1.0 / len(rows))


def evaluation_batches(
    image_ids: np.ndarray,
    shapes: np.ndarray,
    batch_size: int,
    rank: int = 0,
    world_size: int = 1,
    mixing: str = "none",
) -> list[MicroBatch]:
    """One process's batches of a split: every question in exactly one batch of one process.

    `image_ids` (Q,), `shapes` (Q, 2). The batches are the same for any number of processes and are
    dealt in turn. The questions of an image stay together, unless they alone exceed a batch.
    """
    check_batching(batch_size, mixing)
    check_process(rank, world_size)
    groups = group_rows(shapes)
    if mixing != "none":  # by ascending number of cells: neighbours in size go together
        groups.sort(key=lambda group: int(shapes[group[0]].prod()))
        groups = [np.concatenate(groups)] if groups else []
    batches = [batch for group in groups for batch in fill_batches(image_ids, group, batch_size)]
    return [MicroBatch(batch, 1.0 / len(batch)) for batch in batches[rank::world_size]]


def spread_rows(
    image_ids: np.ndarray, shapes: np.ndarray, batch_size: int, limit: int, mixing: str = "none"
) -> np.ndarray:
    """The rows, ascending, of at most `limit` evaluation batches, spread evenly over all."""
    batches = evaluation_batches(image_ids, shapes, batch_size, mixing=mixing)
    chosen = np.linspace(0, len(batches) - 1, min(limit, len(batches))).astype(np.int64)
    rows = [row for n in chosen for row in batches[n].rows]
    return np.sort(np.array(rows, dtype=np.int64))


def fill_batches(image_ids: np.ndarray, group: np.ndarray, batch_size: int) -> Iterator[np.ndarray]:
    """Yield batches of whole images; `group` (n,) are rows whose images may share a batch."""
    rows = gather_images(group, image_ids)
    bounds = np.flatnonzero(np.diff(image_ids[rows])) + 1
    batch: list[np.ndarray] = []
    filled = 0
    for image in np.split(rows, bounds):
        if filled and filled + len(image) > batch_size:
            yield np.concatenate(batch)
            batch, filled = [], 0
        while len(image) > batch_size:
            yield image[:batch_size]
            image = image[batch_size:]
        batch.append(image)
        filled += len(image)
    if filled:
        yield np.concatenate(batch)


def group_rows(shapes: np.ndarray) -> list[np.ndarray]:
    """For each distinct shape, in ascending order, the rows that have it."""
    if len(shapes) == 0:
        return []
    keys = shapes[:, 0].astype(np.int64) << 32 | shapes[:, 1]
    order = np.argsort(keys, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)


def gather_images(rows: np.ndarray, image_ids: np.ndarray) -> np.ndarray:
    """The rows (n,), each image's together at the place of its first one."""
    _, first, image = np.unique(image_ids[rows], return_index=True, return_inverse=True)
    return rows[np.argsort(first[image], kind="stable")]


def chop(rows: np.ndarray, length: int) -> list[np.ndarray]:
    """Cut rows (n,) into arrays of `length`, the last one shorter."""
    return [rows[start : start + length] for start in range(0, len(rows), length)]
