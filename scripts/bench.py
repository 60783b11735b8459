"""make bench: how fast it is, as ratios measured in one run against plain baselines."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from benchmarks.measurement import Part
from benchmarks.parts import (
    crowded,
    estimates,
    evaluation,
    growth,
    heads,
    loading,
    scale,
    scoring,
    training,
)
from benchmarks.table import as_values, write_lines, write_markdown
from benchmarks.timing import describe_machine
from configs.schema.training import Bench, Train
from data.io.atomic_files import check_output_file, write_json
from data.io.page_block import write_block
from data.shapes.build import Sizes as Pairs
from mcan.cost.hours import Assumptions
from mcan.network.model import Sizes
from mcan.runtime.distributed import choose_device
from mcan.runtime.torch_settings import keep_memory
from scripts import cost, train
from scripts.cli.command import command

PAGE = Path("docs/performance.md")
TOY = Sizes(50, 20, 16, embedding=8, hidden=16, num_layers=1, num_heads=2, pooling=16, output=16)
TOY_STEPS = estimates.Workload(TOY, 4, (3, 4), num_images=4, num_steps=2, rounds=1)
TOY_SHAPES = Pairs(train=8, val=4, test=4, human=0)
WITHOUT_NETWORK = ("loading", "scoring")
SCALE = "scale"  # measured and documented on its own: whole commands, for minutes


@command("bench")
def main(settings: Bench) -> None:
    """Measure part by part, print the table, write all of it."""
    device = choose_device(settings.device, local_rank=0)
    output = Path(settings.output)
    check_output_file(output)
    (paper,), (run,) = cost.main.compose([]), train.main.compose([])
    parts = (toy_parts if settings.toy else full_parts)(device, paper.assume, run)
    parts[SCALE] = partial(scale.measure, settings.sizes)
    for name in settings.parts:
        if name not in parts:
            raise ValueError(f"there is no part '{name}' to measure; there are {', '.join(parts)}")
    is_scale = settings.parts == [SCALE]
    is_complete = is_scale or set(settings.parts) == set(parts) - {SCALE}
    if settings.document and (settings.toy or not is_complete):
        raise ValueError(
            f"document=true writes {PAGE}, which needs all parts, or parts=[{SCALE}], and not "
            "toy=true"
        )
    machine, start = describe_machine(device), time.monotonic()
    print(f"{machine}; interleaved rounds, medians", flush=True)
    found: dict[str, Part] = {}
    for name in settings.parts:
        # the memory settings of training and evaluation last, so the parts without them come first
        if name not in WITHOUT_NETWORK and not settings.toy:
            keep_memory()
        found[name] = parts[name]()
        lines = [each.line() for each in found[name].details] or ["skipped: it needs a GPU"]
        print(f"\n{name}", *lines, sep="\n", flush=True)
    rows = [row for part in found.values() for row in part.rows]
    minutes = (time.monotonic() - start) / 60
    print("", *write_lines(rows), sep="\n")
    about = {"machine": machine, "minutes": round(minutes, 2), "toy": settings.toy}
    write_json(output, {**about, **as_values(found)}, indent=1)
    print(f"\nwritten to {output} after {minutes:.1f} minutes")
    if settings.document:
        table = write_markdown(rows, f"{machine}; {minutes:.1f} minutes in all.")
        if is_scale:
            lines = [each.line() for each in found[SCALE].details]
            table += "\n".join(["", "```", *lines, "```", ""])
        write_block(PAGE, "scale of make bench" if is_scale else "make bench", table)
        print(f"the table is now in {PAGE}")


def full_parts(
    device: torch.device, assumed: Assumptions, run: Train
) -> dict[str, Callable[[], Part]]:
    """The parts of the benchmark, at the sizes that docs/performance.md reports."""
    networks = {"heads": heads, "training": training, "evaluation": evaluation, "growth": growth}
    works = {name: partial(module.measure, device) for name, module in networks.items()}
    works["crowded"] = partial(crowded.measure, run)
    works["estimates"] = partial(estimates.measure, device, assumed)
    return {"loading": loading.measure, "scoring": scoring.measure, **works}


def toy_parts(
    device: torch.device, assumed: Assumptions, run: Train
) -> dict[str, Callable[[], Part]]:
    """The parts of the benchmark at toy sizes, which show that they run and not how fast."""
    return {
        "loading": partial(loading.measure, 24, 2, 16),
        "scoring": partial(scoring.measure, 1, 2000),
        "heads": partial(heads.measure, device, rounds=1, batch=2),
        "training": partial(training.measure, device, 2, 2, TOY),
        "evaluation": partial(evaluation.measure, device, 1, 3, 4, TOY),
        "growth": partial(growth.measure, device, 1, 1, (4, 8), (1, 2)),
        "crowded": partial(crowded.measure, run, 1, 2, TOY_SHAPES),
        "estimates": partial(estimates.measure, device, assumed, TOY_STEPS),
    }


if __name__ == "__main__":
    main()
