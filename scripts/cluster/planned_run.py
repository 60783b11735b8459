"""A training run that make paper or make sweep wants: whether it is there, and how it starts."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from mcan.training.metrics_file import read_metrics
from scripts.cluster.launch import launch_arguments


@dataclass(frozen=True)
class PlannedRun:
    """A run's folder, and the overrides of make train that make it."""

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

    def start_arguments(self, num_processes: int) -> list[str]:
        """Say that it trains, or resumes where it stopped; the arguments of Python for that."""
        resume = ["resume=true"] if self.folder.is_dir() else []
        print(f"{self.folder.name}: {'resumes' if resume else 'trains'}", flush=True)
        return launch_arguments(num_processes, "scripts.train", *self.overrides, *resume)
