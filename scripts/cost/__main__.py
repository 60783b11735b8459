"""make cost: FLOPs, bytes and memory of a training, and the hours that they mean."""

from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf

from data.files import write_json
from mcan import MCAN
from scripts.cost.document import write_block
from scripts.cost.machines import Assumptions
from scripts.cost.table import (
    as_values,
    describe_assumptions,
    describe_estimates,
    describe_work,
    estimate_all,
)
from scripts.cost.workload import Sizes, choose_bits, count_workload
from scripts.entry import command
from scripts.model import build_head, build_model, head_schedules, import_modules
from scripts.settings import require_text


@command("cost")
def main(config: DictConfig) -> None:
    """Count, print and, if asked, write."""
    import_modules(list(config.modules))
    output = config.output and require_text("output", config.output)
    document = config.document and require_text("document", config.document)
    check_numbers(config)
    assumed = Assumptions(**config.assume)
    model = make_model(config)
    work = count_workload(
        model, take_sizes(config), choose_bits(config.runtime.precision), sorted(set(config.gpus))
    )
    estimates = estimate_all(work, assumed)
    lines = describe_work(work, config.attention.name, config.runtime.keep)
    lines += ["", *describe_estimates(work, estimates, assumed)]
    lines += ["", *describe_assumptions(assumed)]
    print("\n".join(lines))
    if document:
        write_block(Path(document), "\n".join(lines))
    if output:
        write_json(output, as_values(work, estimates, assumed), indent=1)
        print(f"\nwritten to {output}")


def make_model(config: DictConfig) -> MCAN:
    """The network without numbers."""
    options: dict[str, Any] = OmegaConf.to_container(config.attention, resolve=True)  # type: ignore[assignment]
    head = build_head(options, head_schedules(options, config.optim.epochs))
    sizes = {
        "num_words": config.words,
        "num_answers": config.answers,
        "num_features": config.features,
    }
    with torch.device("meta"):
        return build_model(config.model, head, sizes)


def take_sizes(config: DictConfig) -> Sizes:
    """The sizes of data and training."""
    return Sizes(
        config.optim.batch_size,
        config.optim.epochs,
        config.train_questions,
        config.val_questions,
        config.val_images,
        take_grid("grid", config.grid),
        take_grid("largest_grid", config.largest_grid),
        config.runtime.evaluation_batch_size,
        config.runtime.micro_batches,
    )


def take_grid(name: str, given: Any) -> tuple[int, int]:
    """A grid's height and width."""
    if len(given) != 2 or min(given) < 1:
        raise ValueError(f"{name} is {list(given)}, expected [height,width] in cells")
    return given[0], given[1]


def check_numbers(config: DictConfig) -> None:
    """Raise for a number of things that there cannot be."""
    names = ("words", "answers", "features", "train_questions", "val_questions", "val_images",
             "optim.batch_size", "optim.epochs", "runtime.micro_batches",
             "runtime.evaluation_batch_size")  # fmt: skip
    for name in names:
        value = OmegaConf.select(config, name)
        if value < 1:
            raise ValueError(f"{name} is {value}, expected at least 1")
    if not config.gpus or min(config.gpus) < 1 or max(config.gpus) > config.optim.batch_size:
        raise ValueError(
            f"gpus is {list(config.gpus)}, expected numbers from 1 to optim.batch_size="
            f"{config.optim.batch_size}: more GPUs than questions have nothing to do"
        )


if __name__ == "__main__":
    main()
