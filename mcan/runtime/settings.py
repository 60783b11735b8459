"""How a command runs on its machine: what configs/runtime/default.yaml sets, as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

Count = Annotated[int, ">= 1"]
CountOrZero = Annotated[int, ">= 0"]
EVALUATION_BATCH_SIZE = 128  # where neither a setting nor a model says another
Precision = Literal["auto", "float32", "bfloat16", "float16"]


@dataclass(frozen=True)
class Runtime:
    """Device, dtype, processes, loading and checkpoints.

    None of it is part of a model; `mixing` alone changes which questions are trained on together.
    Ranges and choices are checked where settings are read: scripts/cli/settings.py.
    """

    device: str | None = None
    precision: Precision = "auto"
    num_threads: Count | None = None
    micro_batches: Count = 1
    evaluation_batch_size: Count | None = None
    compile: bool = False
    deterministic: bool = False
    timeout_minutes: Annotated[float, "> 0"] = 10.0
    checkpoint_every_minutes: Annotated[float, ">= 0"] = 10.0  # 0: after every step
    keep: Count = 2
    reader: Literal["mmap", "pread"] = "mmap"
    stage_to: str | None = None
    loader_threads: CountOrZero | None = None  # None: mcan/runtime/loader_threads.py chooses
    mixing: Literal["none", "leftovers", "all"] = "none"
    max_restarts: CountOrZero = 0
    show_progress: bool = True


def read_batch_size(config: Mapping[str, Any]) -> int:
    """The questions in a batch of a run's validation, from the config in its checkpoint."""
    return int(config.get("runtime", {}).get("evaluation_batch_size") or EVALUATION_BATCH_SIZE)
