"""make bench: how fast it is, as ratios measured in one run against plain baselines."""

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

import torch
from omegaconf import DictConfig

from data.files import refuse_file_on_the_way, refuse_folder, write_json
from mcan.model import Sizes
from mcan.processes import choose_device
from scripts.bench import evaluation, growth, heads, levers, loading, scoring, training
from scripts.bench.measurement import Part
from scripts.bench.table import update_page, write_lines, write_markdown
from scripts.entry import command
from scripts.settings import require_text
from scripts.torch_settings import keep_memory

PAGE = Path("docs/performance.md")
TOY = Sizes(50, 20, 16, embedding=8, hidden=16, num_layers=1, num_heads=2, pooling=16, output=16)


@command("bench")
def main(config: DictConfig) -> None:
    device = config.device and require_text("device", config.device)
    place = choose_device(device, local_rank=0)
    output = Path(require_text("output", config.output))
    refuse_file_on_the_way(output)
    refuse_folder(output)
    parts = toy_parts(place) if config.toy else full_parts(place)
    for name in config.parts:
        if name not in parts:
            raise ValueError(f"there is no part '{name}' to measure; there are {', '.join(parts)}")
    if config.document and (config.toy or set(config.parts) != set(parts)):
        raise ValueError(f"document=true writes {PAGE}, which needs all parts, and not toy=true")
    print(f"{machine(place)}; interleaved rounds, medians", flush=True)
    start = time.monotonic()
    found: dict[str, Part] = {}
    for name in config.parts:
        found[name] = parts[name]()
        print(f"\n{name}", *(each.line() for each in found[name].details), sep="\n", flush=True)
    rows = [row for part in found.values() for row in part.rows]
    minutes = (time.monotonic() - start) / 60
    print("", *write_lines(rows), sep="\n")
    write_json(output, report(found, machine(place), minutes, config.toy), indent=1)
    print(f"\nwritten to {output} after {minutes:.1f} minutes")
    if config.document:
        circumstances = f"{machine(place)}; {minutes:.1f} minutes in all."
        update_page(PAGE, write_markdown(rows, found["levers"].details, circumstances))
        print(f"the table is now in {PAGE}")


def full_parts(device: torch.device) -> dict[str, Callable[[], Part]]:
    """What is measured, at the sizes that the page speaks of."""
    return {
        "loading": lambda: loading.measure(),
        "scoring": lambda: scoring.measure(),
        "heads": keeping_memory(lambda: heads.measure(device)),
        "training": keeping_memory(lambda: training.measure(device)),
        "evaluation": keeping_memory(lambda: evaluation.measure(device)),
        "growth": keeping_memory(lambda: growth.measure(device)),
        "levers": keeping_memory(lambda: levers.measure(device)),
    }


def keeping_memory(measure: Callable[[], Part]) -> Callable[[], Part]:
    """A part with the memory settings of training and evaluation.

    They last until the end, so the parts without them come first.
    """

    def measured() -> Part:
        keep_memory()
        return measure()

    return measured


def toy_parts(device: torch.device) -> dict[str, Callable[[], Part]]:
    """The same at sizes that say nothing of speed: whether all of it runs."""
    return {
        "loading": lambda: loading.measure(24, 2, 16),
        "scoring": lambda: scoring.measure(1, 2000),
        "heads": lambda: heads.measure(device, rounds=1),
        "training": lambda: training.measure(device, 2, 2, TOY),
        "evaluation": lambda: evaluation.measure(device, 1, 3, 4, TOY),
        "growth": lambda: growth.measure(device, 1, 1, (4, 8), (1, 2)),
        "levers": lambda: levers.measure(device, 1, 2, TOY),
    }


def report(found: dict[str, Part], place: str, minutes: float, toy: bool) -> dict[str, object]:
    """All figures, for a machine to read."""
    return {
        "machine": place,
        "minutes": round(minutes, 2),
        "toy": toy,
        "table": [
            {
                "part": name,
                "work": row.work,
                "against": row.against,
                "reach": row.reach,
                "median": row.median,
                "values": row.values,
                "reached": row.reached,
            }
            for name, part in found.items()
            for row in part.rows
        ],
        "details": {
            name: [
                {"name": r.name, "unit": r.unit, "median": r.median, "values": r.values}
                for r in part.details
            ]
            for name, part in found.items()
        },
    }


def machine(device: torch.device) -> str:
    """What it ran on, in a few words."""
    if device.type == "cuda":
        return f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{platform.machine()}, {cores} cores, torch {torch.__version__}"


if __name__ == "__main__":
    main()
