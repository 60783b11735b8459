"""The training runs that a report needs: which they are, which are there, how the others start."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from configs.schema.training import Train
from mcan.training.preparation import check_word_vectors
from mcan.training.run_folder import read_metrics
from scripts.cli.command import read_words
from scripts.cli.composition import Configuration
from scripts.cluster.launch import launch_arguments

HEADS = ("discrete", "unimodal", "multimodal")
FINE_TUNED = "discrete → multimodal"


@dataclass(frozen=True)
class Run:
    """One training run: a head, or fine-tuning, with one seed."""

    kind: str
    seed: int
    folder: Path
    overrides: tuple[str, ...]

    def checkpoint(self, epoch: str = "best") -> Path:
        """Of the best epoch or of the last one."""
        return self.folder / f"{epoch}.pt"

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
        except Exception as error:  # YAML and OmegaConf raise whatever a damaged file leads to
            reason = " ".join(str(error).split())[:120]
            raise ValueError(f"{path} is not the config of a run: {reason}") from None
        return settings  # type: ignore[return-value]

    def is_finished(self) -> bool:
        """Whether all its epochs are there."""
        if not (self.checkpoint().is_file() and (self.folder / "config.yaml").is_file()):
            return False
        return len(self.metrics()) >= self.config()["optim"]["epochs"]

    def check(self) -> None:
        """Raise for wrong settings, or without the word vectors that a run to be started needs."""
        (settings,) = Configuration("train", Train).compose(read_words(self.overrides))
        if not self.folder.is_dir():
            check_word_vectors(settings.word_vectors)

    def start_arguments(self, num_processes: int) -> list[str]:
        """Say that it trains, or resumes where it stopped; the arguments of Python for that."""
        resume = ["resume=true"] if self.folder.is_dir() else []
        print(f"{self.folder.name}: {'resumes' if resume else 'trains'}", flush=True)
        return launch_arguments(num_processes, "scripts.train", *self.overrides, *resume)


def plan_runs(
    data: str, seeds: Sequence[int], runs: Path, shared: Sequence[str], fine_tuning_epochs: int
) -> list[Run]:
    """Every head with every seed, and the discrete model of each seed made multimodal."""
    planned = []
    for seed in seeds:
        for kind, head in (*zip(HEADS, HEADS, strict=True), (FINE_TUNED, "multimodal")):
            name = f"{'fine-tuned' if kind == FINE_TUNED else head}-seed{seed}"
            words = ["figures=0", *shared]
            if data == "vqa_v2":
                words += [f"experiment=paper_{head}"]
            else:
                words += [f"data={data}", f"attention={head}"]
            if kind == FINE_TUNED:  # the last override of a key counts: these come after `shared`
                words += [f"init_from={runs / f'discrete-seed{seed}' / 'best.pt'}"]
                words += [f"optim.epochs={fine_tuning_epochs}"]
            words += [f"seed={seed}", f"runs={runs}", f"name={name}"]
            planned.append(Run(kind, seed, runs / name, tuple(words)))
    return planned


def train(run: Run, num_processes: int) -> None:
    """Start it, or resume it where it stopped; skipped when it is finished."""
    if run.is_finished():
        print(f"{run.folder.name}: there already", flush=True)
    else:
        call(run.start_arguments(num_processes), run.folder.name)


def call(arguments: Sequence[str], what: str) -> None:
    """Run a command of this project to its end; it prints itself what went wrong."""
    code = subprocess.run([sys.executable, *arguments], check=False).returncode
    if code:
        raise ValueError(f"{what} ended with exit code {code}; the same command resumes it")
