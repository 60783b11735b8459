"""Settings of the commands that let trained models answer."""

from dataclasses import dataclass
from typing import Annotated, Literal

from configs.schema.groups import DataRoot, LambdaGrid
from configs.schema.kinds import Count, CountOrZero, NotNegative, Options, Required, Seed
from mcan.runtime.settings import Runtime

Resolution = Annotated[int, ">= 20"]  # dots per inch of a figure


@dataclass(frozen=True, kw_only=True)
class TrainedSettings:
    """What all of them have: the head's options to change, and where runs are found by name."""

    attention: Options
    runtime: Runtime
    modules: list[str]
    runs: str


@dataclass(frozen=True, kw_only=True)
class Evaluate(TrainedSettings):
    """configs/evaluate.yaml"""

    checkpoint: Required
    split: str
    other_images: bool
    data: DataRoot
    output: str | None


@dataclass(frozen=True, kw_only=True)
class Export(TrainedSettings):
    """configs/export.yaml"""

    checkpoint: str | None
    checkpoints: list[str]
    split: str
    data: DataRoot
    name: str | None
    output: str | None


@dataclass(frozen=True, kw_only=True)
class SelectLambda(TrainedSettings):
    """configs/select_lambda.yaml"""

    checkpoint: Required
    split: str
    folds: Count
    seed: Seed
    grid: LambdaGrid
    data: DataRoot
    output: str | None

    def __post_init__(self) -> None:
        if "lam" in self.attention:
            raise ValueError("attention.lam is what is selected; grid.extra=[…] adds values to try")


@dataclass(frozen=True, kw_only=True)
class HumanAttention(TrainedSettings):
    """configs/human_attention.yaml"""

    checkpoints: list[str]
    split: str
    data: DataRoot
    blur: NotNegative
    resamples: Count
    seed: Seed
    output: str | None


@dataclass(frozen=True, kw_only=True)
class ChosenQuestions(TrainedSettings):
    """What figures and gallery share: models, and which questions to show."""

    checkpoints: list[str]
    split: str
    questions: list[int]
    choose: Literal["random", "differ", "failures", "human"]
    num: Count
    seed: Seed
    pool: CountOrZero
    data: DataRoot
    output: str | None


@dataclass(frozen=True, kw_only=True)
class Figures(ChosenQuestions):
    """configs/figures.yaml"""

    components: bool
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
    num_examples: CountOrZero
    seed: Seed
    upload_megabytes: Count
    data: DataRoot
