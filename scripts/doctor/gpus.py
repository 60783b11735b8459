"""The GPUs of this machine, its driver and NCCL, against what a run asks for."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from mcan.cost.hours import GPUS, Assumptions, find_gpu
from mcan.cost.step_cost import Cost
from mcan.runtime.precision import choose_dtype
from scripts.doctor.finding import Finding, ok, problem, warning

DRIVER = Path("/proc/driver/nvidia/version")
SPARE = 1_500_000_000  # bytes for CUDA itself, workspaces and short-lived tensors
OTHER_GPU = "A100 80 GB"  # counted with where a GPU is none of make cost's table
ON_A_NODE = "run the doctor where the training will run: inside a job on a GPU node"


@dataclass(frozen=True)
class Machine:
    """What torch and the driver report."""

    devices: tuple[Any, ...]  # torch's properties: name, total_memory, major, minor
    dtypes: tuple[torch.dtype, ...]  # what runtime.precision=auto is on each
    driver: str  # empty without one
    cuda: str  # that torch was built with; empty for a CPU build
    architectures: tuple[str, ...]  # that torch's kernels were compiled for
    nccl: str


def inspect_machine() -> Machine:
    """This machine."""
    found = torch.cuda.is_available()
    numbers = range(torch.cuda.device_count() if found else 0)
    return Machine(
        tuple(map(torch.cuda.get_device_properties, numbers)),
        tuple(choose_dtype("auto", torch.device("cuda", number)) for number in numbers),
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


def check_gpus(machine: Machine, num_processes: int, device: str | None) -> Iterator[Finding]:
    """Whether a machine can run that many processes on the device of that name."""
    if (device or "").startswith("cpu"):
        yield ok("runtime.device=cpu: GPUs are not asked for")
        return
    if not machine.devices:
        yield explain_no_gpu(machine, num_processes, device)
        return
    for number, (each, dtype) in enumerate(zip(machine.devices, machine.dtypes, strict=True)):
        yield check_device(number, each, dtype, machine.architectures)
    if num_processes > len(machine.devices):
        yield problem(
            f"{num_processes} GPUs are asked for, but torch sees {len(machine.devices)}",
            "ask for fewer with GPUS=n, or for more of them from your scheduler",
        )
    yield ok(f"torch is built for CUDA {machine.cuda}; NCCL {machine.nccl}; {machine.driver}")


def explain_no_gpu(machine: Machine, num_processes: int, device: str | None) -> Finding:
    """Why torch sees no GPU, and whether that matters."""
    if machine.driver and not machine.cuda:
        return problem(
            f"there is a driver ({machine.driver}), but this torch is built without CUDA",
            "install torch's CUDA build: make clean, then make install with an ordinary index",
        )
    if machine.driver:
        return problem(
            f"torch, built for CUDA {machine.cuda}, finds no GPU although there is a driver "
            f"({machine.driver})",
            "the driver is too old for that CUDA, or CUDA_VISIBLE_DEVICES hides the GPUs, or the "
            "container was started without them (--gpus all, --nv)",
        )
    if device or num_processes > 1:
        asked = f"{device} is" if device else f"{num_processes} GPUs are"
        return problem(f"there is no GPU here, but {asked} asked for", ON_A_NODE)
    text = "there is no GPU here: training runs on the CPU, which is enough for a small model"
    return warning(text, f"go on with shapes or experiment=photos; else {ON_A_NODE}")


def check_device(
    number: int, device: Any, dtype: torch.dtype, architectures: tuple[str, ...]
) -> Finding:
    """One GPU."""
    major, minor = device.major, device.minor
    text = f"GPU {number}: {device.name}, {device.total_memory / 1e9:.0f} GB"
    # kernels for 8.0 run on 8.6 as well: the same major number, and not a newer minor one
    fits = any(
        name.split("_")[-1][:-1] == str(major) and int(name[-1]) <= minor
        for name in architectures
        if name[-1].isdigit()
    )
    if architectures and not fits:
        return problem(
            f"{text}: torch was compiled for {', '.join(architectures)}, not for its "
            f"sm_{major}{minor}",
            "install a build of torch for an older CUDA that still has it, or use another GPU",
        )
    if dtype is torch.bfloat16:
        return ok(f"{text}, bfloat16")
    return ok(f"{text}, no bfloat16: runtime.precision=auto is float16 with a loss scale")


def check_launches(
    machine: Machine, step: Cost, num_questions: int, dtype: torch.dtype
) -> Iterator[Finding]:
    """Whether a process's share of a batch is too small to keep its GPU busy."""
    gpus = {}
    for device in machine.devices:
        name = find_gpu(device.name)
        unknown = f"{device.name} (not in make cost's table, so counted as {OTHER_GPU})"
        gpus[name or unknown] = GPUS[name or OTHER_GPU]
    for name, gpu in sorted(gpus.items()):
        busy, launching = Assumptions().time_kernels(step, gpu, dtype)
        if launching > busy:
            yield warning(
                f"a step of {num_questions} questions per process computes for about "
                f"{1e3 * busy:.1f} ms on the {name} but takes {1e3 * launching:.1f} ms to launch "
                f"its {step.kernels:,} kernels (estimated as by make cost)",
                "runtime.compile=true launches fewer; or use fewer GPUs for one run",
            )


def check_memory(machine: Machine, needed: int) -> Finding:
    """Whether a step of `needed` bytes fits into the smallest GPU, beside CUDA itself."""
    text = f"a step takes about {needed / 1e9:.1f} GB of a GPU, and CUDA {SPARE / 1e9:.1f} GB"
    smallest = min((device.total_memory for device in machine.devices), default=None)
    if smallest is not None and needed + SPARE > smallest:
        return problem(
            f"{text}, but the smallest has {smallest / 1e9:.1f} GB",
            "runtime.micro_batches=2 (or 4, …) takes less, and so do more GPUs: make cost",
        )
    return ok(f"{text} (counted from the model on the largest grid)")
