"""A CUDA device that does not exist: forward passes run on it in shape alone.

A `FakeTensorMode` computes shapes and devices without numbers. With a CPU build of torch it needs
only a device guard for CUDA, which a library of five lines registers.
"""

import contextlib
import ctypes
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch
from torch._subclasses import FakeTensorMode

import attention.basis

CUDA = torch.device("cuda", 0)
GUARD = """
#include <c10/core/impl/DeviceGuardImplInterface.h>
static c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::CUDA> guard;
static const bool registered = [] {
  auto& registry = c10::impl::device_guard_impl_registry;
  registry[static_cast<size_t>(c10::DeviceType::CUDA)].store(&guard);
  return true;
}();
"""


class StandInEvent:
    """What records and waits on a real device."""

    def record(self) -> None: ...

    def synchronize(self) -> None: ...


@contextlib.contextmanager
def fake_cuda() -> Iterator[None]:
    """Tensors on `CUDA` inside; for a process of its own, since what is cached stays fake."""
    register_device_guard()
    # a CUDA build of torch would ask the device which of its kernels to take
    torch.backends.cudnn.enabled = False
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.cuda.amp.common.amp_definitely_not_available = lambda: False
    torch.cuda.is_bf16_supported = lambda *_, **__: True
    torch.cuda.Event = StandInEvent
    torch.Tensor.backward = lambda *_, **__: None  # it does not run on fake tensors
    attention.basis._warn_of_a_bad_fit = lambda *_: None  # it looks at numbers, once per shape
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with mode:
        yield


def register_device_guard() -> None:
    """Compile and load the guard, unless torch has a real one."""
    if torch.cuda.is_available():
        return
    package = Path(torch.__file__).parent
    ctypes.CDLL(str(package / "lib/libc10.so"), mode=ctypes.RTLD_GLOBAL)
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "guard.cpp"), Path(folder, "guard.so")
        source.write_text(GUARD)
        words = ["-std=c++20", "-shared", "-fPIC", f"-I{package / 'include'}"]
        subprocess.run(
            ["g++", *words, str(source), "-o", str(library), f"-L{package / 'lib'}", "-lc10"],
            check=True,
        )
        ctypes.CDLL(str(library))
