"""Settings of the commands that make, convert and check files."""

from dataclasses import dataclass

from configs.schema.kinds import Count, CountOrZero, Required, Sides
from data.settings import Data


@dataclass(frozen=True, kw_only=True)
class MakeData:
    """configs/make_data.yaml"""

    data: Data
    modules: list[str]


@dataclass(frozen=True, kw_only=True)
class Features:
    """configs/features.yaml"""

    source: Required
    output: Required
    backbone: str | None
    resize: Sides | None
    dtype: str
    force: bool
    num_threads: CountOrZero
    modules: list[str]


@dataclass(frozen=True, kw_only=True)
class Extract:
    """configs/extract.yaml"""

    images: Required
    output: Required
    backbone: str
    weights: str
    resize: Sides | None
    device: str | None
    batch_size: Count
    dtype: str
    force: bool
    num_threads: CountOrZero
    modules: list[str]


@dataclass(frozen=True, kw_only=True)
class VerifyFeatures:
    """configs/verify_features.yaml"""

    store: Required
    questions: str | list[str] | None
    backbone: str | None
    resize: Sides | None
    modules: list[str]


@dataclass(frozen=True, kw_only=True)
class Score:
    """configs/score.yaml"""

    questions: Required
    annotations: Required
    results: Required
    output: str | None


@dataclass(frozen=True, kw_only=True)
class Release:
    """configs/release.yaml"""

    checkpoint: Required
    output: Required
    modules: list[str]
    runs: str
