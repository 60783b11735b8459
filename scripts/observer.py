"""What a run shows: a progress bar, and TensorBoard."""

import time
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from tqdm import tqdm

from mcan.step import Reading
from mcan.training import Progress
from scripts.board import Board
from scripts.model import flatten
from scripts.sample_maps import SampleMaps

COMPARED = ("seed", "data", "model", "attention", "optim", "init_from", "glove")


class Silent:
    """Shows nothing: every process but the first."""

    def start_epoch(self, progress: Progress, steps_per_epoch: int) -> None: ...

    def see_step(self, reading: Reading, rate: float) -> None: ...

    def end_epoch(self, metrics: dict[str, Any], global_step: int) -> None: ...


class Display:
    """A bar with speed, loss, learning rate and time left; scalars and maps for TensorBoard."""

    def __init__(
        self, config: DictConfig, folder: Path, global_step: int, maps: SampleMaps
    ) -> None:
        self.board = Board(folder / "tensorboard", global_step)
        self.settings = list_settings(config)
        self.num_epochs, self.show = config.optim.epochs, config.runtime.show_progress
        self.maps = maps
        self.bar: tqdm[Any] | None = None
        self.start, self.num_questions = time.monotonic(), 0

    def start_epoch(self, progress: Progress, steps_per_epoch: int) -> None:
        self.start, self.num_questions = time.monotonic(), 0
        self.bar = tqdm(
            total=steps_per_epoch,
            initial=progress.step,
            desc=f"epoch {progress.epoch}/{self.num_epochs}",
            unit="step",
            disable=not self.show,
        )

    def see_step(self, reading: Reading, rate: float) -> None:
        assert self.bar is not None
        self.num_questions += reading.num_questions
        loss = reading.loss / max(1, reading.num_questions)
        self.bar.set_postfix_str(
            f"{self.questions_per_second():.0f} questions/s, loss {loss:.3f}, rate {rate:.2g}",
            refresh=False,
        )
        self.bar.update()
        if reading.step % 20 == 0:
            self.board.add("scalar", "train/loss", loss, reading.step)
            self.board.add("scalar", "train/learning_rate", rate, reading.step)
            self.board.add("scalar", "train/gradient_norm", reading.gradient_norm, reading.step)

    def questions_per_second(self) -> float:
        return self.num_questions / max(1e-9, time.monotonic() - self.start)

    def end_epoch(self, metrics: dict[str, Any], global_step: int) -> None:
        assert self.bar is not None
        self.bar.close()
        step = global_step - 1  # the epoch's last: purge_step is the first of the next one
        for name, value in metrics.items():
            if isinstance(value, (int, float)):
                self.board.add("scalar", f"epoch/{name}", value, step)
        for question_id, picture in self.maps.draw().items():
            self.board.add("image", f"attention/question_{question_id}", picture, step)
        if metrics["epoch"] == self.num_epochs:
            accuracy = {"hparam/accuracy": metrics["accuracy"]}
            self.board.add("hparams", self.settings, accuracy, run_name=".", global_step=step)
        self.board.flush()
        if self.show:
            shares = metrics.get("component_shares")
            print(
                f"epoch {metrics['epoch']}: loss {metrics['loss']:.3f}, "
                f"validation accuracy {metrics['accuracy']:.2f}"
                + (f", K* {shares}" if shares else ""),
                flush=True,
            )


def list_settings(config: DictConfig) -> dict[str, Any]:
    """The settings by which TensorBoard compares runs, as values that it can show."""
    now: dict[str, Any] = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
    flat = {key: value for name in COMPARED for key, value in flatten(name, now[name]).items()}
    return {
        key: value if isinstance(value, (bool, int, float, str)) else str(value)
        for key, value in flat.items()
    }
