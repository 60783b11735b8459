"""The GPUs of this machine, its driver and NCCL, against what a training asks for."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from scripts.doctor.finding import Finding, doubtful, good, wrong

DRIVER = Path("/proc/driver/nvidia/version")
SPARE = 1_500_000_000  # bytes for CUDA itself, workspaces and what lives for a moment


@dataclass(frozen=True)
class Device:
    """One GPU as torch sees it."""

    name: str
    num_bytes: int
    capability: tuple[int, int]
    has_bfloat16: bool


@dataclass(frozen=True)
class Machine:
    """What torch and the driver say."""

    devices: tuple[Device, ...]
    driver: str  # empty without one
    cuda: str  # that torch was built with; empty for a CPU build
    architectures: tuple[str, ...]  # that torch's kernels were compiled for
    nccl: str


def look_at_machine() -> Machine:
    """This machine."""
    found = torch.cuda.is_available()
    devices = []
    for number in range(torch.cuda.device_count() if found else 0):
        facts = torch.cuda.get_device_properties(number)
        bfloat16 = facts.major >= 8
        devices.append(Device(facts.name, facts.total_memory, (facts.major, facts.minor), bfloat16))
    return Machine(
        tuple(devices),
        read_driver(),
        torch.version.cuda or "",
        tuple(torch.cuda.get_arch_list()) if found else (),
        ".".join(map(str, torch.cuda.nccl.version())) if found else "",
    )


def read_driver() -> str:
    """The driver's own line; empty where there is none."""
    try:
        return DRIVER.read_text(encoding="utf-8").splitlines()[0]
    except (OSError, IndexError):
        return ""


def check_gpus(machine: Machine, wanted: int, device: str | None) -> Iterator[Finding]:
    """Judge a machine for a training with `wanted` processes on the device of that name."""
    if (device or "").startswith("cpu"):
        yield good("runtime.device=cpu: GPUs are not asked for")
        return
    if not machine.devices:
        yield explain_absence(machine, wanted, device)
        return
    for number, each in enumerate(machine.devices):
        yield judge_device(number, each, machine)
    if wanted > len(machine.devices):
        yield wrong(
            f"{wanted} GPUs are asked for, but torch sees {len(machine.devices)}",
            "ask for fewer with GPUS=n, or for more of them from your scheduler",
        )
    yield good(f"torch is built for CUDA {machine.cuda}; NCCL {machine.nccl}; {machine.driver}")


def explain_absence(machine: Machine, wanted: int, device: str | None) -> Finding:
    """Why torch sees no GPU, and whether that matters."""
    if machine.driver and not machine.cuda:
        return wrong(
            f"there is a driver ({machine.driver}), but this torch is built without CUDA",
            "install torch's CUDA build: make clean, then make install with an ordinary index",
        )
    if machine.driver:
        return wrong(
            f"torch, built for CUDA {machine.cuda}, finds no GPU although there is a driver "
            f"({machine.driver})",
            "the driver is too old for that CUDA, or CUDA_VISIBLE_DEVICES hides the GPUs, or the "
            "container was started without them (--gpus all, --nv)",
        )
    if device or wanted > 1:
        return wrong(
            f"there is no GPU here, but {device or f'{wanted} GPUs'} "
            f"{'is' if device else 'are'} asked for",
            "run the doctor where the training will run: inside a job on a GPU node",
        )
    return doubtful(
        "there is no GPU here: a training runs on the CPU, which is enough for shapes alone",
        "run the doctor where the training will run: inside a job on a GPU node",
    )


def judge_device(number: int, device: Device, machine: Machine) -> Finding:
    """One GPU."""
    major, minor = device.capability
    text = f"GPU {number}: {device.name}, {device.num_bytes / 1e9:.0f} GB"
    # kernels for 8.0 run on 8.6 as well: the same major number, and not a newer minor one
    fits = any(
        name.split("_")[-1][:-1] == str(major) and int(name[-1]) <= minor
        for name in machine.architectures
        if name[-1].isdigit()
    )
    if machine.architectures and not fits:
        return wrong(
            f"{text}: torch was compiled for {', '.join(machine.architectures)}, not for its "
            f"sm_{major}{minor}",
            "install a build of torch for an older CUDA that still has it, or use another GPU",
        )
    if device.has_bfloat16:
        return good(f"{text}, bfloat16")
    return good(f"{text}, no bfloat16: runtime.precision=auto is float16 with a loss scale")


def check_memory(machine: Machine, needed: int) -> Iterator[Finding]:
    """Whether a step of so many bytes fits into the smallest GPU, beside CUDA itself."""
    text = f"a step takes about {needed / 1e9:.1f} GB of a GPU, and CUDA {SPARE / 1e9:.1f} GB"
    smallest = min((device.num_bytes for device in machine.devices), default=None)
    if smallest is not None and needed + SPARE > smallest:
        yield wrong(
            f"{text}, but the smallest has {smallest / 1e9:.1f} GB",
            "runtime.micro_batches=2 (or 4, …) takes less, and so do more GPUs: make cost",
        )
    else:
        yield good(f"{text} (counted from the model on the largest grid)")
