"""Attention maps of a few validation questions after every epoch: how attention develops."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from data.batching.sampler import MicroBatch
from mcan.evaluation.attention_maps import map_attention
from mcan.runtime.distributed import World
from mcan.training.step import StepResult
from mcan.training.trackers.tensorboard import EventFile
from mcan.training.trackers.tracker import TrackedRun

NUM_SAMPLES = 4
PIXELS = 16  # per cell


class AttentionSamples:
    """Maps of questions that are spread evenly over the validation split; none of regions."""

    def __init__(self, events: EventFile, run: TrackedRun) -> None:
        self.events, self.run = events, run
        self.alone = World(0, 1, run.device)
        num_questions = len(run.validation.question_ids)
        number = min(NUM_SAMPLES, num_questions) if run.validation.loader.stores.is_grid else 0
        self.rows = np.linspace(0, num_questions - 1, number).astype(np.int64)

    def start_epoch(self, epoch: int, first_step: int) -> None: ...

    def on_step(self, result: StepResult, rate: float) -> None: ...

    def end_epoch(self, metrics: Mapping[str, Any]) -> None:
        for question_id, image in self.draw():
            step = metrics["step"] - 1
            self.events.add("image", f"attention/question_{question_id}", image, step)
        self.events.flush()

    def draw(self) -> Iterator[tuple[int, np.ndarray]]:
        """Question ids with their maps as grey levels (1, h·PIXELS, w·PIXELS) uint8."""
        run, loader = self.run, self.run.validation.loader
        for row in self.rows:
            height, width = loader.shapes[row].tolist()
            batches = loader.iterate([MicroBatch(np.array([row]), 1.0)])
            maps = map_attention(run.model, batches, height * width, self.alone, run.dtype)
            cells = maps.cells[0].reshape(height, width).numpy()
            grey = np.round(255 * cells / cells.max()).astype(np.uint8)
            image = np.kron(grey, np.ones((PIXELS, PIXELS), dtype=np.uint8))
            yield int(maps.question_ids[0]), image[None]
