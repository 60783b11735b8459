"""Settings of torch and of the memory under it that all commands share.

That of the GPU's memory is in scripts/__init__.py: torch reads it when it is imported.
"""

import ctypes
import os

import torch

from mcan.runtime.settings import Runtime

# of glibc's mallopt, which knows no names at run time
TRIM_THRESHOLD, TOP_PAD, MMAP_MAX, ARENA_MAX = -1, -2, -4, -8
NARROW = 64  # hidden width of a network up to which one thread is as fast as several


def set_up_torch(runtime: Runtime) -> None:
    """What the group `runtime` says of torch itself."""
    keep_memory()
    # float32 means float32, of matrix products and in cuDNN (the LSTM): TF32 keeps 10 of 23 bits.
    # By default torch has it off in the former and on in the latter.
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    if runtime.num_threads:
        torch.set_num_threads(runtime.num_threads)
    if runtime.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # else torch refuses products
        torch.use_deterministic_algorithms(True)
        torch.backends.cudnn.benchmark = False


def use_threads(
    runtime: Runtime, hidden: int, device: torch.device, before: int | None = None
) -> None:
    """Set torch's threads for a network on a CPU, by its width unless they are given.

    The bits of a result depend on the number, so a training run keeps the one that it had before.
    """
    if device.type == "cpu":
        torch.set_num_threads(choose_num_threads(runtime, hidden, before))


def choose_num_threads(runtime: Runtime, hidden: int, before: int | None) -> int:
    """As set, as the run had before, or by the network's width.

    Threads wait for each other at every operation. Those of a narrow network are so short that
    more threads gain little, and beside another program the waiting takes most of the time.
    """
    return runtime.num_threads or before or (1 if hidden <= NARROW else torch.get_num_threads())


def seed_generators(device: torch.device, seed: int) -> None:
    """Seed what is drawn on the CPU and on a device, at every step.

    torch.manual_seed does so too, and takes half a millisecond to find the other devices there are.
    """
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)


def keep_memory() -> None:
    """Have the C library keep up to a gigabyte of what is freed, for the next tensor.

    By default it returns most of it to the system, which clears every page before reusing it.
    """
    set_malloc(MMAP_MAX, 0)  # a block with a mapping of its own is returned as soon as it is freed
    set_malloc(TRIM_THRESHOLD, 1 << 30)
    set_malloc(TOP_PAD, 64 << 20)


def share_memory_among_threads() -> None:
    """Have all threads reuse what any of them freed; else each of a server's threads keeps some."""
    set_malloc(ARENA_MAX, 1)


def set_malloc(option: int, value: int) -> None:
    """One of glibc's options; other libraries are left alone."""
    try:
        ctypes.CDLL(None).mallopt(option, value)
    except (OSError, AttributeError, TypeError):
        return
