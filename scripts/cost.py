"""make cost: what a run computes, counted from the model, and the hours that this means."""

from pathlib import Path

import torch

from configs.schema.training import Cost
from data.io.atomic_files import write_json
from data.io.page_block import write_block
from mcan import MCAN
from mcan.cost.hours import Assumptions
from mcan.cost.run_cost import RunSizes, count_run, describe_run
from mcan.cost.step_cost import choose_gpu_dtype
from mcan.head_schedule import ScheduledHead
from mcan.network.architecture import build_model
from scripts.cli.command import command


@command("cost")
def main(settings: Cost) -> None:
    """Count, print and, if asked, write."""
    check_gpus(settings)
    values = count_run(
        build(settings),
        take_sizes(settings),
        choose_gpu_dtype(settings.runtime.precision),
        sorted(settings.gpus),
        Assumptions(**vars(settings.assume)),
    )
    text = "\n".join(describe_run(values))
    print(text)
    if settings.document:
        write_block(Path(settings.document), "make cost", f"```\n{text}\n```\n")
    if settings.output:
        write_json(settings.output, values, indent=1)
        print(f"\nwritten to {settings.output}")


def check_gpus(settings: Cost) -> None:
    """Raise where there is no GPU, or where one would have no question."""
    if not settings.gpus or max(settings.gpus) > settings.optim.batch_size:
        raise ValueError(
            f"gpus is {settings.gpus}, expected numbers from 1 to optim.batch_size="
            f"{settings.optim.batch_size}: more GPUs than questions have nothing to do"
        )


def build(settings: Cost) -> MCAN:
    """The network without numbers."""
    head = ScheduledHead(settings.attention, settings.optim.epochs).build()
    data = {f"num_{name}": getattr(settings, name) for name in ("words", "answers", "features")}
    with torch.device("meta"):
        return build_model(settings.model, head, **data)


def take_sizes(settings: Cost) -> RunSizes:
    """The sizes of data and run."""
    same = ("question_length", "train_questions", "train_images", "val_questions", "val_images")
    return RunSizes(
        **{name: getattr(settings, name) for name in same},
        batch_size=settings.optim.batch_size,
        num_epochs=settings.optim.epochs,
        grid=settings.grid,
        largest_grid=settings.largest_grid,
        evaluation_batch_size=settings.runtime.evaluation_batch_size,
        micro_batches=settings.runtime.micro_batches,
    )


if __name__ == "__main__":
    main()
