"""The trainings that a report needs: which they are, which are there, and how the others start."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

HEADS = ("discrete", "unimodal", "multimodal")
FINE_TUNED = "discrete → multimodal"


@dataclass(frozen=True)
class Run:
    """One training: a head, or fine-tuning, with one seed."""

    kind: str
    seed: int
    folder: Path
    overrides: tuple[str, ...]

    @property
    def checkpoint(self) -> Path:
        return self.folder / "best.pt"

    def metrics(self) -> list[dict[str, Any]]:
        """The lines of its epochs so far."""
        path = self.folder / "metrics.jsonl"
        if not path.is_file():
            return []
        return [json.loads(line) for line in path.read_text().splitlines()]

    def config(self) -> dict[str, Any]:
        """The settings it was started with."""
        settings = OmegaConf.load(self.folder / "config.yaml")
        return OmegaConf.to_container(settings)  # type: ignore[return-value]

    def is_finished(self) -> bool:
        """Whether all its epochs are there."""
        if not (self.checkpoint.is_file() and (self.folder / "config.yaml").is_file()):
            return False
        return len(self.metrics()) >= self.config()["optim"]["epochs"]


def plan_runs(
    data: str, seeds: Sequence[int], runs: Path, shared: Sequence[str], fine_tuning_epochs: int
) -> list[Run]:
    """Every head with every seed, and the discrete model of each seed made multimodal."""
    planned = []
    for seed in seeds:
        planned += [
            make_run(head, f"{head}-seed{seed}", seed, runs, choose(data, head), shared)
            for head in HEADS
        ]
        discrete = runs / f"discrete-seed{seed}" / "best.pt"
        more = [f"init_from={discrete}", f"optim.epochs={fine_tuning_epochs}"]
        chosen = [*choose(data, "multimodal"), *more]
        planned.append(make_run(FINE_TUNED, f"fine-tuned-seed{seed}", seed, runs, chosen, shared))
    return planned


def choose(data: str, head: str) -> list[str]:
    """The settings of a head: on VQA-v2 the paper's."""
    if data == "vqa_v2":
        return [f"experiment=paper_{head}"]
    return [f"data={data}", f"attention={head}"]


def make_run(
    kind: str, name: str, seed: int, runs: Path, chosen: Sequence[str], shared: Sequence[str]
) -> Run:
    """A run in runs/<name>; what all runs share gives way to what makes this one."""
    # optim.epochs of fine-tuning must win: the last override of a key counts
    overrides = ["figures=0", *shared, *chosen, f"seed={seed}", f"runs={runs}", f"name={name}"]
    return Run(kind, seed, runs / name, tuple(overrides))


def train(run: Run, num_processes: int) -> None:
    """Start it, or go on where it stopped; skipped when it is finished."""
    if run.is_finished():
        print(f"{run.folder.name}: there already", flush=True)
        return
    resume = (run.folder / "last.pt").is_file()
    print(f"{run.folder.name}: {'goes on' if resume else 'trains'}", flush=True)
    launcher = ["scripts.launch", f"--processes={num_processes}"] if num_processes > 1 else []
    words = [*run.overrides, *(["resume=true"] if resume else [])]
    call(["-m", *launcher, "scripts.train", *words], run.folder.name)


def call(arguments: Sequence[str], what: str) -> None:
    """Run a command of this project to its end; its own words say what went wrong."""
    code = subprocess.run([sys.executable, *arguments], check=False).returncode
    if code:
        raise ValueError(f"{what} ended with exit code {code}; the same command goes on from there")
