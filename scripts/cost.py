"""make cost: what a run computes, counted from the model, and the hours that this means."""

from collections.abc import Iterator
from dataclasses import asdict
from math import prod
from pathlib import Path
from typing import Any

import torch

from attention import Grid
from configs.schema.training import Cost
from data.io.atomic_files import check_output_file, write_json
from data.io.page_block import read_block, write_block
from mcan.cost.hours import GPUS
from mcan.cost.step_cost import CHECKPOINT_BYTES, META, count_head, count_training_step
from mcan.head_schedule import ScheduledHead
from mcan.network.architecture import build_model
from mcan.network.model import count_parameters
from mcan.runtime.precision import choose_dtype
from scripts.cli.command import command


@command("cost")
def main(settings: Cost) -> None:
    """Count, print and, if asked, write."""
    if not settings.gpus or max(settings.gpus) > settings.optim.batch_size:
        raise ValueError(
            f"gpus is {settings.gpus}, expected numbers from 1 to optim.batch_size="
            f"{settings.optim.batch_size}: more GPUs than questions have nothing to do"
        )
    for path in filter(None, (settings.document, settings.output)):
        check_output_file(Path(path))
    if settings.document:
        read_block(Path(settings.document), "make cost")  # raises where there is none to replace
    values = count_run(settings)
    text = "\n".join(describe_run(settings, values))
    print(text)
    if settings.document:
        write_block(Path(settings.document), "make cost", f"```\n{text}\n```\n")
    if settings.output:
        write_json(settings.output, values, indent=1)
        print(f"\nwritten to {settings.output}")


def count_run(settings: Cost) -> dict[str, Any]:
    """What is counted, and by GPU and number of GPUs the hours and what limits them."""
    optim, assumed, gpus = settings.optim, settings.assume, sorted(settings.gpus)
    dtype = choose_dtype(settings.runtime.precision, META)
    head = ScheduledHead(settings.attention, optim.epochs).build()
    data = {f"num_{name}": getattr(settings, name) for name in ("words", "answers", "features")}
    with torch.device("meta"):
        model = build_model(settings.model, head, **data)
    num_parameters = count_parameters(model)
    *steps, largest = (
        count_training_step(
            model, optim.batch_size, grid, settings.question_length, dtype, number,
            settings.runtime.micro_batches,
        )
        for grid, number in [*((settings.grid, n) for n in gpus), (settings.largest_grid, gpus[0])]
    )  # fmt: skip
    cells = Grid.of([settings.grid] * optim.batch_size, device=META)
    image_bytes = 2 * settings.features * prod(settings.grid)  # float16
    transfers = 4 * num_parameters, optim.batch_size * image_bytes
    # a question of the validation takes the forward third of a step
    num_questions = optim.epochs * (settings.train_questions + settings.val_questions / 3)
    hours: dict[str, dict[int, tuple[float, str]]] = {name: {} for name in GPUS}
    for name, gpu in GPUS.items():
        for number, step in zip(gpus, steps, strict=True):
            seconds, limit = assumed.time_step(step, gpu, dtype, number, *transfers)
            hours[name][number] = num_questions / optim.batch_size * seconds / 3600, limit
    return {
        "precision": str(dtype).removeprefix("torch."),
        "parameters": num_parameters,
        "step": asdict(steps[0]),
        "head_kernels": dict(zip(("training", "test"), count_head(head, cells), strict=True)),
        "largest_step": asdict(largest),
        "train_feature_bytes": settings.train_images * image_bytes,
        "val_feature_bytes": settings.val_images * image_bytes,
        "checkpoint_bytes": CHECKPOINT_BYTES * num_parameters,
        "assumed": asdict(assumed),
        "hours": hours,
    }


def describe_run(settings: Cost, values: dict[str, Any]) -> Iterator[str]:
    """The values as lines: what is counted, a table of hours, what they assume."""
    gpus = sorted(settings.gpus)
    title = f"training step, {-(-settings.optim.batch_size // gpus[0])} questions"
    yield f"counted: {values['parameters'] / 1e6:.2f} M parameters, {values['precision']}"
    yield f"{'':<40}{'TFLOP':>8}{'traffic':>10}{'kernels':>9}{'memory':>9}"
    for grid, cost in (
        (settings.grid, values["step"]),
        (settings.largest_grid, values["largest_step"]),
    ):
        yield (
            f"  {f'{title}, {prod(grid)} cells':<38}{cost['flops'] / 1e12:>8.3f}"
            f"{cost['bytes'] / 1e9:>7.1f} GB{cost['kernels']:>9,}"
            f"{cost['memory_bytes'] / 1e9:>6.1f} GB"
        )
    kernels = values["head_kernels"]
    yield (
        f"  of which the {settings.attention['name']} head {kernels['training']:,} kernels; "
        f"at test time {kernels['test']:,}"
    )
    yield (
        f"on disk: features of train {values['train_feature_bytes'] / 1e9:.0f} GB, of val "
        f"{values['val_feature_bytes'] / 1e9:.0f} GB; a checkpoint "
        f"{values['checkpoint_bytes'] / 1e9:.2f} GB, of which a run needs runtime.keep + 2"
    )
    yield f"\nestimated, not measured: hours of {settings.optim.epochs} epochs and what limits them"
    yield f"{'GPUs':<16}" + "".join(f"{number:>15}" for number in gpus)
    for name, row in values["hours"].items():
        yield f"  {name:<14}" + "".join(f"{f'{time:.1f} {why}':>15}" for time, why in row.values())
    yield "assumed: " + ", ".join(f"{name}={each:g}" for name, each in values["assumed"].items())


if __name__ == "__main__":
    main()
