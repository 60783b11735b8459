"""Groups of settings that several commands share."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from configs.schema.kinds import Count, CountOrZero, NotNegative


@dataclass(frozen=True, kw_only=True)
class DataRoot:
    """data: where the data of a trained model is, unless where it was trained."""

    root: str | None


@dataclass(frozen=True, kw_only=True)
class Launcher:
    """launcher: where runs are started; all after `dry_run` is Slurm's."""

    name: Literal["local", "slurm"]
    gpus: Count
    dry_run: bool = False
    nodes: Count = 1
    array_parallelism: Count = 256
    gres: str | None = None
    cpus: Count = 4
    memory_gb: Count | None = None
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    minutes: Count = 1440
    signal_seconds: Annotated[int, ">= 1 and <= 65535"] = 300  # Slurm takes no more
    more: list[str] = field(default_factory=list)
    setup: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.signal_seconds >= 60 * self.minutes:
            raise ValueError(
                f"signal_seconds={self.signal_seconds} must be shorter than the time limit, "
                f"launcher.minutes={self.minutes}"
            )


@dataclass(frozen=True, kw_only=True)
class LambdaGrid:
    """grid: the λ of a table, evenly from low to high on a logarithmic scale, and extra ones."""

    low: NotNegative
    high: NotNegative
    count: CountOrZero
    extra: list[NotNegative]
