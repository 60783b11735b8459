"""Settings of the commands that train, plan or measure training runs."""

from dataclasses import dataclass, field
from typing import Any, Literal

from configs.schema.groups import DataRoot, LambdaGrid, Launcher
from configs.schema.kinds import (
    Count,
    CountOrZero,
    Folds,
    NotNegative,
    Options,
    Positive,
    Required,
    Seed,
    Share,
    Sides,
)
from mcan.cost.hours import Assumptions
from mcan.network.settings import Architecture
from mcan.runtime.settings import Runtime
from mcan.training.settings import Optim, TrainingSettings

Family = Literal["paper", "sparse"]  # of attention heads


@dataclass(frozen=True, kw_only=True)
class Train(TrainingSettings):
    """configs/train.yaml"""

    name: str | None
    resume: bool
    modules: list[str]
    figures: CountOrZero
    runs: str
    is_debug: bool
    # what differs from the chosen files, by dotted key: the default name of a run has it
    changes: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, kw_only=True)
class Doctor(Train):
    """configs/doctor.yaml"""

    gpus: Count
    sample_megabytes: Count


@dataclass(frozen=True, kw_only=True)
class Submit(Train):
    """configs/submit.yaml"""

    launcher: Launcher


@dataclass(frozen=True, kw_only=True)
class SweepOptions:
    """sweep: the sweep itself, beside the settings of its runs."""

    name: str
    over: list[str]
    folds: Folds
    grid: LambdaGrid
    parallel: Literal["auto"] | Count
    wait: bool
    poll_seconds: Positive


@dataclass(frozen=True, kw_only=True)
class Sweep(Submit):
    """configs/sweep.yaml"""

    sweep: SweepOptions

    def __post_init__(self) -> None:
        if self.is_debug:
            raise ValueError("debug=quick is for make train; try one job of the sweep with it")
        if not self.sweep.wait and self.launcher.name != "slurm":
            raise ValueError("sweep.wait=false needs LAUNCHER=slurm: jobs here end with the sweep")


@dataclass(frozen=True, kw_only=True)
class SweepJob:
    """configs/sweep_job.yaml"""

    sweep: Required
    job: Required


@dataclass(frozen=True, kw_only=True)
class SweepReport:
    """configs/sweep_report.yaml"""

    sweep: str


@dataclass(frozen=True, kw_only=True)
class Paper:
    """configs/paper.yaml"""

    dataset: str
    data: DataRoot
    heads: list[str]
    family: Family
    seeds: list[Seed]
    gpus: Count
    parallel: Count
    train: str
    measure: str
    fine_tuning_epochs: Count
    epoch: Literal["best", "last", "both"]
    figures: CountOrZero
    runs: str

    def __post_init__(self) -> None:
        for name, given in (("seeds", self.seeds), ("heads", self.heads)):
            if len(set(given)) < len(given):
                shown = ",".join(map(str, given))
                raise ValueError(f"{name}=[{shown}] has an entry twice; name each once")


@dataclass(frozen=True, kw_only=True)
class Soak:
    """configs/soak.yaml"""

    minutes: Positive
    samples_per_minute: Count
    warm_up: Share
    tolerance: NotNegative
    train: str


@dataclass(frozen=True, kw_only=True)
class ImportMcan:
    """configs/import_mcan.yaml"""

    attention: Options
    optim: Optim
    checkpoint: Required
    output: Required
    num_heads: Count
    tokens: str | None
    questions: list[str]
    answers: str | None
    words_of: str | None
    backbone: str
    train_split: str
    modules: list[str]
    composed: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """configs/cost.yaml"""

    model: Architecture
    attention: Options
    optim: Optim
    runtime: Runtime
    words: Count
    answers: Count
    question_length: Count
    features: Count
    grid: Sides
    largest_grid: Sides
    train_questions: Count
    val_questions: Count
    train_images: Count
    val_images: Count
    gpus: list[Count]
    assume: Assumptions
    modules: list[str]
    output: str | None
    document: str | None


@dataclass(frozen=True, kw_only=True)
class Bench:
    """configs/bench.yaml"""

    parts: list[str]
    sizes: list[Positive]
    toy: bool
    document: bool
    device: str | None
    output: str
