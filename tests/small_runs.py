"""Very small training runs: their settings, how to start them, and what they end with."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from configs.schema.training import Train
from mcan.checkpoint import load_checkpoint
from mcan.runtime.distributed import World
from scripts.cluster.launch import launch_arguments
from scripts.train import main, train

ROOT = Path(__file__).parents[1]
ALONE = World(0, 1, torch.device("cpu"))
HANG = 600  # seconds; on a busy machine a run of a few seconds takes a minute
AT_EVERY_STEP = "runtime.checkpoint_every_minutes=0"
SMALL = [
    "data=custom", "model.hidden=16", "model.pooling=16", "model.output=32", "model.embedding=8",
    "model.num_layers=1", "model.num_heads=2", "model.dropout=0.1", "optim.epochs=2",
    "optim.batch_size=6", "runtime.num_threads=1", "runtime.show_progress=false", "figures=0",
]  # fmt: skip


def settings(dataset: Path, runs: Path, *more: str) -> list[str]:
    """Overrides of a small run, of multimodal attention by default; its folder is runs/<name>."""
    head = ["attention=multimodal", "attention.num_restarts=1"]
    if any(word.startswith("attention=") for word in more):
        head = []
    return [*SMALL, *head, f"data.root={dataset}", f"runs={runs}", *more]


def compose(overrides: list[str]) -> Train:
    """The settings of a training run, as the command gets them."""
    (composed,) = main.compose(overrides)
    return composed


def train_here(overrides: list[str]) -> None:
    """Train in this process; its number of threads is put back."""
    num_threads = torch.get_num_threads()
    try:
        train(compose(overrides), ALONE)
    finally:
        torch.set_num_threads(num_threads)


def train_command(
    overrides: list[str], num_processes: int = 1, module: str = "scripts.train"
) -> list[str]:
    """The command line, as make builds it."""
    return [sys.executable, *launch_arguments(num_processes, module, *overrides)]


def start(
    overrides: list[str],
    num_processes: int = 1,
    module: str = "scripts.train",
    environment: Mapping[str, str] = os.environ,
) -> subprocess.Popen[str]:
    """Start the command."""
    return subprocess.Popen(
        train_command(overrides, num_processes, module),
        cwd=ROOT,
        env={**environment, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit code and all that was printed."""
    printed, _ = process.communicate(timeout=HANG)
    return process.returncode, printed


def wait_for_step(folder: Path, step: int, process: subprocess.Popen[str]) -> None:
    """Wait until a checkpoint of that step or a later one is there."""
    deadline = time.monotonic() + HANG
    while not any(int(p.stem[5:]) >= step for p in folder.glob("step_*.pt")):
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline, "no checkpoint came"
        time.sleep(0.002)


def kill(process: subprocess.Popen[str]) -> None:
    """kill -9, the processes that torchrun started included."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for number in [process.pid, *map(int, children)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
    process.communicate()


def without_times(line: dict[str, Any]) -> dict[str, Any]:
    return {n: v for n, v in line.items() if "seconds" not in n and "per_second" not in n}


def end_state(folder: Path, name: str = "last.pt") -> dict[str, Any]:
    """What must be the same whatever interrupted a run."""
    content = load_checkpoint(folder / name)
    printed = (folder / "metrics.jsonl").read_text().splitlines()
    return {
        **{key: content[key] for key in ("model", "optimizer", "progress", "attention")},
        "lines": [without_times(line) for line in content["lines"]],
        "metrics": [without_times(json.loads(line)) for line in printed],
    }


def assert_same(one: Any, other: Any, place: str = "") -> None:
    """Equal to the last bit, tensors included."""
    assert type(one) is type(other), place
    if isinstance(one, torch.Tensor):
        assert torch.equal(one, other), f"{place} differs"
    elif isinstance(one, dict):
        assert one.keys() == other.keys(), place
        for key in one:
            assert_same(one[key], other[key], f"{place}/{key}")
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other), place
        for number, pair in enumerate(zip(one, other, strict=True)):
            assert_same(*pair, f"{place}/{number}")
    else:
        assert one == other, place


def assert_ends_like(folder: Path, reference: Path) -> None:
    """The same weights, optimizer, metrics and best model, and nothing half-written."""
    assert_same(end_state(folder), end_state(reference))
    assert_same(end_state(folder, "best.pt")["model"], end_state(reference, "best.pt")["model"])
    assert not [*folder.glob(".*.partial"), *folder.glob(".*.link")]
