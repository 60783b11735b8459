"""The dtype of a step: bfloat16 or float16 where a device is faster with it."""

import contextlib
from typing import get_args

import torch

from mcan.runtime.settings import Precision


def choose_dtype(precision: Precision, device: torch.device) -> torch.dtype:
    """The autocast dtype; "auto" is float32 on a CPU, and on a GPU what it computes in natively.

    "meta" stands for a GPU that is only counted for, and that has bfloat16.
    """
    if precision not in get_args(Precision):
        raise ValueError(f"precision must be auto, float32, bfloat16 or float16, not {precision!r}")
    if precision != "auto":
        named: torch.dtype = getattr(torch, precision)
        return named
    if device.type == "cpu":
        return torch.float32
    return torch.bfloat16 if has_bfloat16(device) else torch.float16


def has_bfloat16(device: torch.device) -> bool:
    """Whether a GPU computes in bfloat16 itself: emulated (before Ampere), it is slow or fails."""
    if device.type == "meta":
        return True
    with torch.cuda.device(device):  # torch asks the current one
        return torch.cuda.is_bf16_supported(including_emulation=False)


def autocast_to(
    dtype: torch.dtype, device: torch.device
) -> contextlib.AbstractContextManager[object]:
    """Autocast to the dtype; off where it is float32, and where a device (meta) has none."""
    if not torch.amp.is_autocast_available(device.type):
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=dtype, enabled=dtype is not torch.float32)
