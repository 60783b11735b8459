"""make bench: how fast it is, as ratios measured in one run against plain baselines."""

import os
import platform
from pathlib import Path

import torch
from omegaconf import DictConfig

from data.files import write_json
from scripts.bench import heads, loading
from scripts.bench.measurement import Measurement
from scripts.entry import command


@command("bench")
def main(config: DictConfig) -> None:
    parts = {
        "heads": lambda: heads.measure(device(config.device), config.rounds),
        "loading": lambda: loading.measure(),
    }
    unknown = set(config.parts) - set(parts)
    if unknown:
        raise ValueError(
            f"there is no part '{unknown.pop()}' to measure; there are {', '.join(parts)}"
        )
    print(f"{machine(config.device)}; median (lowest to highest) of interleaved rounds", flush=True)
    results: dict[str, list[Measurement]] = {}
    for name in config.parts:
        results[name] = parts[name]()
        print(f"\n{name}", *(row.line() for row in results[name]), sep="\n", flush=True)
    report = {
        "machine": machine(config.device),
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


def device(name: str | None) -> torch.device:
    """The named device, or the best there is."""
    return torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))


def machine(name: str | None) -> str:
    """What it ran on, in a few words."""
    if device(name).type == "cuda":
        return f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{platform.machine()}, {cores} cores, torch {torch.__version__}"


if __name__ == "__main__":
    main()
