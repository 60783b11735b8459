"""GPUs that are not there: what torch would say of them."""

import contextlib
from collections.abc import Iterator, Sequence
from types import SimpleNamespace

import pytest
import torch


def stand_in(monkeypatch: pytest.MonkeyPatch, names: Sequence[str], majors: Sequence[int]) -> None:
    """Let torch see GPUs of these names and compute capabilities, which can emulate bfloat16."""
    devices = [
        SimpleNamespace(name=name, total_memory=16 * 10**9, major=major, minor=0)
        for name, major in zip(names, majors, strict=True)
    ]
    current = [0]

    @contextlib.contextmanager
    def use(device: torch.device) -> Iterator[None]:
        before, current[0] = current[0], device.index or 0
        yield
        current[0] = before

    functions = {
        "is_available": lambda: True,
        "device_count": lambda: len(devices),
        "current_device": lambda: current[0],
        "device": use,
        "set_device": lambda device: None,
        "get_device_properties": devices.__getitem__,
        "get_arch_list": list,
        "_check_bf16_tensor_supported": lambda device: True,
    }
    for name, function in functions.items():
        monkeypatch.setattr(torch.cuda, name, function)
    monkeypatch.setattr(torch.cuda.nccl, "version", lambda: (2, 28))
