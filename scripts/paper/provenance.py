"""How the runs of a report were made: code, machine, settings, time."""

import os
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path

import torch

from mcan.checkpoint import load_checkpoint
from scripts.paper.runs import Run


def list_facts(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """Names and values."""
    settings = runs[0].config()
    optim = settings["optim"]
    return [
        ("code", find_commit()),
        ("data", f"{settings['data']['name']} in {settings['data']['root']}"),
        ("seeds", ", ".join(sorted({str(run.seed) for run in runs}))),
        ("parameters of every model", f"{count_parameters(runs):,}"),
        ("training", f"{optim['epochs']} epochs of batches of {optim['batch_size']}"),
        ("machine", describe_machine()),
        *((f"run {run.folder.name}", describe_run(run)) for run in runs),
    ]


def count_parameters(runs: Sequence[Run]) -> int:
    """The number of parameters, the same under every head."""
    numbers = {
        sum(tensor.numel() for tensor in load_checkpoint(run.checkpoint())["model"].values())
        for run in runs
    }
    if len(numbers) > 1:
        raise ValueError(f"the models have different numbers of parameters: {sorted(numbers)}")
    return numbers.pop()


def describe_run(run: Run) -> str:
    """How long it trained, and where its settings are."""
    lines = run.metrics()
    steps = [0, *(line["step"] for line in lines)]
    batch = run.config()["optim"]["batch_size"]
    seconds = sum(
        (step - before) * batch / line["questions_per_second"] + line["validation_seconds"]
        for before, step, line in zip(steps, steps[1:], lines, strict=False)
    )
    return f"{len(lines)} epochs in {seconds / 60:.1f} minutes, {run.folder / 'config.yaml'}"


def find_commit() -> str:
    """The commit of the code, where it is a clone."""
    here = Path(__file__).parent
    words = ["git", "-C", str(here), "describe", "--always", "--dirty"]
    try:
        found = subprocess.run(words, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "not a git clone"
    return found.stdout.strip()


def describe_machine() -> str:
    """What the report was made on."""
    if torch.cuda.is_available():
        names = {torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())}
        device = f"{torch.cuda.device_count()} × {', '.join(sorted(names))}"
    else:
        device = f"{os.cpu_count()} processors ({platform.machine()}), no GPU"
    return f"{device}; torch {torch.__version__}, Python {platform.python_version()}"
