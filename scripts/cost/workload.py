"""A training counted once for every number of GPUs: what each of its processes does in a step."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from mcan import MCAN
from mcan.cost import Batch, StepCost, count_evaluation_batch, count_training_step
from mcan.operations import Operation


@dataclass(frozen=True)
class Sizes:
    """Of the data and of the training; grids are (height, width)."""

    batch_size: int  # of all processes together
    num_epochs: int
    train_questions: int
    val_questions: int
    val_images: int
    grid: tuple[int, int]
    largest_grid: tuple[int, int]
    evaluation_batch_size: int = 128
    num_micro_batches: int = 1

    @property
    def steps_per_epoch(self) -> int:
        return -(-self.train_questions // self.batch_size)

    def micro_batch(self, num_processes: int, grid: tuple[int, int]) -> Batch:
        """What the process with the most questions computes at a time."""
        return Batch(-(-self.batch_size // (num_processes * self.num_micro_batches)), grid)

    @property
    def evaluation_batch(self) -> Batch:
        """Questions of a batch and the images that they share."""
        images = round(self.evaluation_batch_size * self.val_images / self.val_questions)
        return Batch(self.evaluation_batch_size, self.grid, max(1, images))


@dataclass(frozen=True)
class Workload:
    """What a training computes; steps by the number of processes."""

    sizes: Sizes
    num_features: int
    dtype: torch.dtype
    steps: dict[int, StepCost]  # on the mean grid
    largest_step: StepCost  # on the largest one, with the fewest processes
    evaluation: tuple[Operation, ...]  # of one batch

    @property
    def num_parameters(self) -> int:
        return next(iter(self.steps.values())).num_parameters

    @property
    def feature_bytes(self) -> int:
        """What all processes together read for a step."""
        return Batch(self.sizes.batch_size, self.sizes.grid).feature_bytes(self.num_features)

    @property
    def evaluation_feature_bytes(self) -> int:
        """What all processes together read for an evaluation: each image once."""
        whole = Batch(self.sizes.val_questions, self.sizes.grid, self.sizes.val_images)
        return whole.feature_bytes(self.num_features)

    @property
    def evaluation_batches(self) -> int:
        return -(-self.sizes.val_questions // self.sizes.evaluation_batch_size)


def count_workload(
    model: MCAN, sizes: Sizes, dtype: torch.dtype, process_counts: Sequence[int]
) -> Workload:
    """Run the model on `meta` for every number of processes; seconds each, whatever its size."""
    micro = sizes.num_micro_batches
    counted: dict[Batch, StepCost] = {}

    def count(batch: Batch) -> StepCost:
        if batch not in counted:
            counted[batch] = count_training_step(model, batch, dtype, micro)
        return counted[batch]

    return Workload(
        sizes,
        model.sizes.num_features,
        dtype,
        {n: count(sizes.micro_batch(n, sizes.grid)) for n in process_counts},
        count(sizes.micro_batch(min(process_counts), sizes.largest_grid)),
        tuple(count_evaluation_batch(model, sizes.evaluation_batch, dtype)),
    )


def choose_bits(precision: str) -> torch.dtype:
    """The dtype of a step on a GPU: 16 bits unless float32 is asked for."""
    known = {"auto": torch.bfloat16, "bfloat16": torch.bfloat16, "float16": torch.float16}
    known["float32"] = torch.float32
    if precision not in known:
        raise ValueError(
            f"runtime.precision must be auto, float32, bfloat16 or float16, not {precision!r}"
        )
    return known[precision]
