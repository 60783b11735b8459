"""Groups of settings that several commands share."""

from dataclasses import dataclass, field
from typing import Literal

from configs.schema.kinds import Count, CountOrZero, NotNegative


@dataclass(frozen=True, kw_only=True)
class DataRoot:
    """data: where the data of a trained model is, unless where it was trained."""

    root: str | None


@dataclass(frozen=True, kw_only=True)
class Launcher:
    """launcher: where runs are started; all after `gpus` is Slurm's."""

    name: Literal["local", "slurm"]
    gpus: Count
    nodes: Count = 1
    gres: str | None = None
    cpus: Count = 4
    memory_gb: Count | None = None
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    minutes: Count = 1440
    more: list[str] = field(default_factory=list)
    setup: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class LambdaGrid:
    """grid: the λ of a table, evenly from low to high on a logarithmic scale, and extra ones."""

    low: NotNegative
    high: NotNegative
    count: CountOrZero
    extra: list[NotNegative]
