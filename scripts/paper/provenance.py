"""How the runs of a report were made: code, machine, settings, time."""

import platform
import statistics
from collections.abc import Sequence

import torch

from data.io.threads import choose_threads
from mcan.checkpoint import load_checkpoint
from mcan.runtime.code_version import find_commit
from scripts.cluster.planned_run import PlannedRun
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


def describe_run(run: PlannedRun) -> str:
    """How long it trained, and where its settings are; epochs without a speed count as the others.

    A run that was stopped in an epoch's validation and resumed has no speed of that epoch.
    """
    lines = run.metrics()
    num_questions = lines[-1]["step"] * run.config()["optim"]["batch_size"]
    speeds = [line["questions_per_second"] for line in lines if line.get("questions_per_second")]
    seconds = sum(line["validation_seconds"] for line in lines)
    seconds += num_questions / statistics.harmonic_mean(speeds) if speeds else 0
    limited = ", NOT WHOLE ONES (runtime.limit_batches)" if "limit_batches" in lines[-1] else ""
    taken = f"{len(lines)} epochs in {seconds / 60:.1f} minutes{limited}"
    return f"{taken}, {run.folder / 'config.yaml'}"


def describe_machine() -> str:
    """What the report was made on."""
    if torch.cuda.is_available():
        names = {torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())}
        device = f"{torch.cuda.device_count()} × {', '.join(sorted(names))}"
    else:
        device = f"{choose_threads(0)} processors ({platform.machine()}), no GPU"
    return f"{device}; torch {torch.__version__}, Python {platform.python_version()}"
