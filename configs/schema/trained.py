"""Settings of the commands that let trained models answer."""

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from configs.schema.groups import DataRoot, LambdaGrid
from configs.schema.kinds import Count, CountOrZero, Folds, Options, Positive, Required, Seed
from mcan.runtime.settings import Runtime

TOKEN = re.compile(r"auto|none|[A-Za-z0-9_-]{16,128}")  # as addresses and cookies can hold it
Resolution = Annotated[int, ">= 20"]  # dots per inch of a figure


@dataclass(frozen=True, kw_only=True)
class TrainedSettings:
    """What all of them have: the head's options to change, and where runs are found by name."""

    attention: Options
    runtime: Runtime
    modules: list[str]
    runs: str


@dataclass(frozen=True, kw_only=True)
class SplitSettings(TrainedSettings):
    """What those have that go through a split."""

    split: str
    data: DataRoot
    output: str | None


@dataclass(frozen=True, kw_only=True)
class Evaluate(SplitSettings):
    """configs/evaluate.yaml"""

    checkpoint: Required
    other_images: bool


@dataclass(frozen=True, kw_only=True)
class Export(SplitSettings):
    """configs/export.yaml"""

    checkpoint: str | None
    checkpoints: list[str]
    name: str | None


@dataclass(frozen=True, kw_only=True)
class AttentionArrays(SplitSettings):
    """configs/attention_arrays.yaml"""

    checkpoint: Required
    questions: list[int]
    layers: str | list[str]
    layer_dtype: Literal["float16", "float32"]
    num_answers: Count
    force: bool


@dataclass(frozen=True, kw_only=True)
class SelectLambda(SplitSettings):
    """configs/select_lambda.yaml"""

    checkpoint: Required
    folds: Folds
    seed: Seed
    grid: LambdaGrid

    def __post_init__(self) -> None:
        if "lam" in self.attention:
            raise ValueError("attention.lam is what is selected; grid.extra=[…] adds values to try")


@dataclass(frozen=True, kw_only=True)
class HumanAttention(SplitSettings):
    """configs/human_attention.yaml"""

    checkpoints: list[str]
    blur: Positive
    resamples: Count
    seed: Seed


@dataclass(frozen=True, kw_only=True)
class ChosenQuestions(SplitSettings):
    """What figures and gallery share: models, and which questions to show."""

    checkpoints: list[str]
    questions: list[int]
    choose: Literal["random", "differ", "failures", "human"]
    num: Count
    seed: Seed
    pool: CountOrZero


@dataclass(frozen=True, kw_only=True)
class Figures(ChosenQuestions):
    """configs/figures.yaml"""

    components: bool
    layers: bool
    smooth: bool
    formats: list[Literal["png", "pdf"]]
    dpi: Resolution


@dataclass(frozen=True, kw_only=True)
class Gallery(ChosenQuestions):
    """configs/gallery.yaml"""

    photo_side: Annotated[int, ">= 32"]


@dataclass(frozen=True, kw_only=True)
class Ask(TrainedSettings):
    """configs/ask.yaml"""

    checkpoint: Required
    image: Required
    question: Required
    weights: str
    output: str | None
    dpi: Resolution


@dataclass(frozen=True, kw_only=True)
class Demo(TrainedSettings):
    """configs/demo.yaml"""

    checkpoint: str | None
    checkpoints: list[str]
    weights: str
    port: CountOrZero
    token: str
    num_examples: CountOrZero
    seed: Seed
    upload_megabytes: Count
    data: DataRoot

    def __post_init__(self) -> None:
        if not TOKEN.fullmatch(self.token):
            raise ValueError("token must be auto, none, or 16 to 128 of A-Z, a-z, 0-9, - and _")
