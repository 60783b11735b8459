"""The dtype of a step: bfloat16 or float16 where a device is faster with it."""

import contextlib
from typing import Literal

import torch

Precision = Literal["auto", "float32", "bfloat16", "float16"]


def choose_dtype(precision: Precision, device: torch.device) -> torch.dtype:
    """The autocast dtype; "auto" is bfloat16 on a CUDA device that has it, else float16 there."""
    named = {
        "float32": torch.float32,
        "bfloat16": torch.bfloat16,
        "float16": torch.float16,
    }
    if precision in named:
        return named[precision]
    if precision != "auto":
        raise ValueError(f"precision must be auto, float32, bfloat16 or float16, not {precision!r}")
    if device.type != "cuda":
        return torch.float32
    return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16


def autocast_to(
    dtype: torch.dtype, device: torch.device
) -> contextlib.AbstractContextManager[object]:
    """Autocast to the dtype; off where it is float32, and where a device (meta) has none."""
    if not torch.amp.is_autocast_available(device.type):
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=dtype, enabled=dtype is not torch.float32)
