"""The training runs that a report needs: which they are, which are there, how the others start."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from mcan.training.run_folder import read_metrics
from scripts.cluster.launch import launch_arguments

HEADS = ("discrete", "unimodal", "multimodal")
UNREADABLE = (
    YAMLError, OmegaConfBaseException, ValueError, TypeError, LookupError, OSError, RecursionError,
)  # fmt: skip
FINE_TUNED = "discrete → multimodal"


@dataclass(frozen=True)
class Run:
    """One training run: a head, or fine-tuning, with one seed."""

    kind: str
    seed: int
    folder: Path
    overrides: tuple[str, ...]

    @property
    def checkpoint(self) -> Path:
        return self.folder / "best.pt"

    def metrics(self) -> list[dict[str, Any]]:
        """The lines of its epochs so far."""
        return read_metrics(self.folder / "metrics.jsonl")

    def config(self) -> dict[str, Any]:
        """The settings it was started with, as they are written: nothing in them is resolved."""
        path = self.folder / "config.yaml"
        try:
            settings = OmegaConf.to_container(OmegaConf.load(path))
            if not isinstance(settings, dict) or type(settings["optim"]["epochs"]) is not int:
                raise TypeError("it has no optim.epochs")
        except FileNotFoundError:
            raise
        except UNREADABLE as error:
            reason = " ".join(str(error).split())[:120]
            raise ValueError(f"{path} is not the config of a run: {reason}") from None
        return settings  # type: ignore[return-value]

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
        for head in HEADS:
            own = choose(data, head)
            planned.append(make_run(head, f"{head}-seed{seed}", seed, runs, own, shared))
        own = [
            *choose(data, "multimodal"),
            f"init_from={runs / f'discrete-seed{seed}' / 'best.pt'}",
            f"optim.epochs={fine_tuning_epochs}",
        ]
        planned.append(make_run(FINE_TUNED, f"fine-tuned-seed{seed}", seed, runs, own, shared))
    return planned


def choose(data: str, head: str) -> list[str]:
    """The settings of a head: on VQA-v2 the paper's."""
    if data == "vqa_v2":
        return [f"experiment=paper_{head}"]
    return [f"data={data}", f"attention={head}"]


def make_run(
    kind: str, name: str, seed: int, runs: Path, own: Sequence[str], shared: Sequence[str]
) -> Run:
    """A run in runs/<name>; what all runs share gives way to what makes this one."""
    # optim.epochs of fine-tuning must win: the last override of a key counts
    overrides = ["figures=0", *shared, *own, f"seed={seed}", f"runs={runs}", f"name={name}"]
    return Run(kind, seed, runs / name, tuple(overrides))


def train(run: Run, num_processes: int) -> None:
    """Start it, or resume it where it stopped; skipped when it is finished."""
    if run.is_finished():
        print(f"{run.folder.name}: there already", flush=True)
        return
    resume = (run.folder / "last.pt").is_file()
    print(f"{run.folder.name}: {'resumes' if resume else 'trains'}", flush=True)
    words = [*run.overrides, *(["resume=true"] if resume else [])]
    call(launch_arguments(num_processes, "scripts.train", *words), run.folder.name)


def call(arguments: Sequence[str], what: str) -> None:
    """Run a command of this project to its end; it prints itself what went wrong."""
    code = subprocess.run([sys.executable, *arguments], check=False).returncode
    if code:
        raise ValueError(f"{what} ended with exit code {code}; the same command resumes it")
