"""What a run takes: its steps and its evaluation, counted, and its hours, estimated from them."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

import torch

from mcan.cost.hours import GPUS, Assumptions
from mcan.cost.step_cost import CHECKPOINT_BYTES, count_evaluation_batch, count_training_step
from mcan.network.model import MCAN, count_parameters


@dataclass(frozen=True)
class RunSizes:
    """Of the data and of the run; grids are (height, width)."""

    batch_size: int
    num_epochs: int
    question_length: int
    grid: tuple[int, int]
    largest_grid: tuple[int, int]
    train_questions: int
    train_images: int
    val_questions: int
    val_images: int
    evaluation_batch_size: int
    micro_batches: int


def count_run(
    model: MCAN,
    sizes: RunSizes,
    dtype: torch.dtype,
    gpu_counts: Sequence[int],
    assumed: Assumptions,
) -> dict[str, Any]:
    """Plain values: FLOPs and bytes; hours, and what limits them, by GPU and number of GPUs."""
    length, batch, fewest = sizes.question_length, sizes.evaluation_batch_size, min(gpu_counts)
    places = [(sizes.grid, number) for number in gpu_counts]
    *counted, largest = (
        count_training_step(model, sizes.batch_size, grid, length, dtype, n, sizes.micro_batches)
        for grid, n in [*places, (sizes.largest_grid, fewest)]
    )
    steps = dict(zip(gpu_counts, counted, strict=True))
    num_images = max(1, round(batch * sizes.val_images / sizes.val_questions))
    evaluation = count_evaluation_batch(model, batch, num_images, sizes.grid, length, dtype)
    num_parameters = count_parameters(model)
    image_bytes = 2 * model.sizes.num_features * prod(sizes.grid)  # float16
    transfers = 4 * num_parameters, sizes.batch_size * image_bytes
    hours: dict[str, dict[int, tuple[float, str]]] = {name: {} for name in GPUS}
    for name, gpu in GPUS.items():
        validation = sizes.val_questions / batch * assumed.time_kernels(evaluation, gpu)
        for number, step in steps.items():
            seconds, limit = assumed.time_step(step, gpu, number, *transfers)
            epoch = sizes.train_questions / sizes.batch_size * seconds + validation / number
            hours[name][number] = sizes.num_epochs * epoch / 3600, limit
    return {
        "sizes": asdict(sizes),
        "precision": str(dtype).removeprefix("torch."),
        "parameters": num_parameters,
        "step": steps[fewest].totals(),
        "largest_step": largest.totals(),
        "evaluation_batch": evaluation.totals(),
        "train_feature_bytes": sizes.train_images * image_bytes,
        "val_feature_bytes": sizes.val_images * image_bytes,
        "checkpoint_bytes": CHECKPOINT_BYTES * num_parameters,
        "assumed": asdict(assumed),
        "hours": hours,
    }


def describe_run(values: dict[str, Any]) -> Iterator[str]:
    """The values as lines: what is counted, a table of hours, what they assume."""
    sizes, hours = values["sizes"], values["hours"]
    numbers = list(next(iter(hours.values())))
    step = f"training step, {-(-sizes['batch_size'] // min(numbers))} questions"
    evaluation = f"evaluation batch, {sizes['evaluation_batch_size']} questions"
    yield f"counted: {values['parameters'] / 1e6:.2f} M parameters, {values['precision']}"
    yield f"{'':<44}{'TFLOP':>8}{'traffic':>10}{'kernels':>9}{'memory':>9}"
    for title, grid, cost in (
        (step, sizes["grid"], values["step"]),
        (step, sizes["largest_grid"], values["largest_step"]),
        (evaluation, sizes["grid"], values["evaluation_batch"]),
    ):
        yield (
            f"  {f'{title}, {prod(grid)} cells':<42}{cost['flops'] / 1e12:>8.3f}"
            f"{cost['bytes'] / 1e9:>7.1f} GB{cost['kernels']:>9,}"
            f"{cost['memory_bytes'] / 1e9:>6.1f} GB"
        )
    yield (
        f"on disk: features of train {values['train_feature_bytes'] / 1e9:.0f} GB, of val "
        f"{values['val_feature_bytes'] / 1e9:.0f} GB; a checkpoint "
        f"{values['checkpoint_bytes'] / 1e9:.2f} GB, of which a run needs runtime.keep + 2"
    )
    yield f"\nestimated, not measured: hours of {sizes['num_epochs']} epochs, and what limits them"
    yield f"{'GPUs':<16}" + "".join(f"{number:>15}" for number in numbers)
    for name, row in hours.items():
        yield f"  {name:<14}" + "".join(f"{f'{time:.1f} {why}':>15}" for time, why in row.values())
    yield "assumed: " + ", ".join(f"{name}={each:g}" for name, each in values["assumed"].items())
