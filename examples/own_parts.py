"""Parts of one's own, one of every kind, without a change to the project.

A module lies in the working directory or on PYTHONPATH, and a command imports it by its name:

    make data DATA=custom ARGS="data.root=<folder> data.layout=shop modules=[examples.own_parts]"
    make extract IMAGES=<folder>/photos/train OUT=<folder>/features/train.h5 BACKBONE=tiny \
        ARGS="dtype=float32 modules=[examples.own_parts]"
    make train ARGS="modules=[examples.own_parts] data=custom data.root=<folder> data.layout=shop \
        val_split=minival attention=own attention.name=sharp 'attention.temperature={halving:0.5}' \
        'optim.rate={name:falling,start:0.002}' tracker=[tensorboard,diary]"
    make evaluate CHECKPOINT=runs/<name> ARGS="split=minival modules=[examples.own_parts]"
"""

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

import attention
from data.backbones.network import Network
from data.backbones.registry import Resize, Weights, register_backbone
from data.features.dtype import register_dtype
from data.vqa.layout import Layout, register_layout
from mcan.evaluation.metrics import AnsweredSplit, register_metric
from mcan.head_schedule import register_schedule
from mcan.training.learning_rate import register_rate
from mcan.training.step import StepResult
from mcan.training.trackers import TrackedRun, register_tracker


@attention.register("sharp")
class Sharp(attention.Head):
    """Discrete attention by a softmax with a temperature, which may follow a schedule."""

    schedulable: ClassVar[Mapping[str, type]] = {"temperature": float}

    def __init__(self, temperature: float) -> None:
        super().__init__()
        self.temperature = temperature

    def normalise(self, scores: Tensor, grid: attention.Grid) -> Tensor:
        """Weights (B, L) from scores (B, L); without it, the option `normaliser` decides."""
        return super().normalise(scores / self.temperature, grid)

    def attend(
        self,
        weights: Tensor,
        values: Tensor,
        grid: attention.Grid,
        num_components: int | None,
        step: int,
    ) -> attention.AttentionOutput:
        """The mean of the values (B, L, D) under weights (B, L)."""
        context = (weights[:, None].to(values.dtype) @ values)[:, 0]
        return attention.AttentionOutput(context, weights)


@register_schedule("halving")
class Halving:
    """{halving: x}: half as much in every epoch."""

    def __init__(self, setting: float, num_epochs: int) -> None:
        self.first = setting

    def at(self, epoch: int) -> float:
        return self.first / 2 ** (epoch - 1)


@register_rate("falling")
class Falling:
    """start / (1 + step)"""

    def __init__(self, start: float) -> None:
        self.start = start

    def at(self, epoch: int, step: int, num_steps: int) -> float:
        return self.start / (1 + step)


@register_tracker("diary")
class Diary:
    """diary.txt in the run's folder: a line of JSON for all that a tracker is shown."""

    def __init__(self, run: TrackedRun) -> None:
        self.file = run.folder / "diary.txt"
        self.write("run", run.first_step, run.num_epochs, run.config["name"])

    def write(self, *values: object) -> None:
        with open(self.file, "a", encoding="utf-8") as file:
            print(json.dumps(values), file=file)

    def start_epoch(self, epoch: int, first_step: int) -> None:
        self.write("epoch", epoch, first_step)

    def on_step(self, result: StepResult, rate: float) -> None:
        self.write("step", result.step, rate)

    def end_epoch(self, metrics: Mapping[str, Any]) -> None:
        self.write("end", metrics["epoch"], metrics["accuracy"])


@register_metric("variety")
def count_answers(answered: AnsweredSplit) -> dict[str, int]:
    """How many different answers were given: in metrics.jsonl and in every report."""
    return {"num_different_answers": len(set(answered.answers.values()))}


# the names of splits and files; image files too, which are COCO's unless image_names is given
register_layout(
    "shop",
    Layout(
        subtypes={split: (split, split) for split in ("train", "minival", "testdev")},
        annotated=("train", "minival"),
        questions="{split}/questions.json",
        annotations="{split}/annotations.json",
        image_folder="photos/{images}",
        image_names=("{image_id}.jpg", "{image_id}.png"),
    ),
)

register_dtype("float32", torch.float32)


@register_backbone("tiny")
class Tiny(Network):
    """Mean colours of cells of 16 pixels; a part of a cell at the border counts as a cell."""

    def __init__(self, weights: Weights, device: torch.device, resize: Resize) -> None:
        super().__init__(
            "tiny",
            torch.nn.AvgPool2d(16, ceil_mode=True, count_include_pad=False),
            num_features=3,
            stride=16,
            mean=[0.0] * 3,
            std=[255.0] * 3,
            device=device,
            resize=(64, 128),
        )
