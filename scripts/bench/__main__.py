"""make bench: how fast it is, as ratios measured in one run against plain baselines."""

import os
import platform
from pathlib import Path

import torch
from omegaconf import DictConfig

from data.files import write_json
from mcan.processes import choose_device
from scripts.bench import heads, loading
from scripts.bench.measurement import Measurement
from scripts.entry import command
from scripts.settings import require_text


@command("bench")
def main(config: DictConfig) -> None:
    device = config.device and require_text("device", config.device)
    place = choose_device(device, local_rank=0)
    if config.rounds < 1:
        raise ValueError(f"rounds is {config.rounds}, expected at least 1")
    parts = {
        "heads": lambda: heads.measure(place, config.rounds),
        "loading": lambda: loading.measure(),
    }
    for name in config.parts:
        if name not in parts:
            raise ValueError(f"there is no part '{name}' to measure; there are {', '.join(parts)}")
    print(f"{machine(place)}; median (lowest to highest) of interleaved rounds", flush=True)
    results: dict[str, list[Measurement]] = {}
    for name in config.parts:
        results[name] = parts[name]()
        print(f"\n{name}", *(row.line() for row in results[name]), sep="\n", flush=True)
    report = {
        "machine": machine(place),
        **{
            name: [
                {"name": r.name, "unit": r.unit, "median": r.median, "values": r.values}
                for r in rows
            ]
            for name, rows in results.items()
        },
    }
    write_json(Path(config.output), report, indent=1)
    print(f"\nwritten to {config.output}")


def machine(device: torch.device) -> str:
    """What it ran on, in a few words."""
    if device.type == "cuda":
        return f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{platform.machine()}, {cores} cores, torch {torch.__version__}"


if __name__ == "__main__":
    main()
