"""What a training needs of the system around it: versions, extras, limits, a compiler."""

import importlib.metadata
import os
import platform
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path

import torch

from data.room import format_bytes
from mcan.compilation import check_compiler
from scripts.doctor.finding import Finding, catch, doubtful, good

CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"
EXTRAS = {
    "matplotlib": "figures (make install)",
    "gradio": "make demo (which installs it)",
    "hydra-submitit-launcher": "LAUNCHER=slurm (pip install -c constraints.txt -e '.[slurm]')",
}
FEWEST_FILES = 1024
SHARED_MEMORY = 1 << 30


def check_versions(constraints: Path = CONSTRAINTS) -> Iterator[Finding]:
    """Installed versions against the pinned ones."""
    if not constraints.is_file():
        yield doubtful(
            f"{constraints} is not there, so versions cannot be compared",
            "run from a clone of the repository",
        )
        return
    lines = constraints.read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if "==" in line and line[0] != "#")
    other = []
    for name, version in pinned.items():
        found = find_version(name)
        if found and found.split("+")[0] != version.split("+")[0]:
            other.append(f"{name} {found} instead of {version}")
    described = f"Python {platform.python_version()}, torch {torch.__version__}"
    if other:
        yield doubtful(
            f"{described}; versions that were not tested: {', '.join(other)}",
            "make clean and make install put the pinned ones there",
        )
    else:
        yield good(f"{described}; all versions are those of {constraints.name}")


def find_version(name: str) -> str | None:
    """The installed version of a package."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def check_extras(figures: int) -> Iterator[Finding]:
    """What is optional; a training that should draw figures needs matplotlib."""
    absent = {name: use for name, use in EXTRAS.items() if find_version(name) is None}
    if figures and "matplotlib" in absent:
        yield doubtful(
            f"matplotlib is not installed: the {figures} figures at the end will not be drawn",
            "make install, or figures=0",
        )
    there = [name for name in EXTRAS if name not in absent]
    if there:
        yield good(f"extras installed: {', '.join(there)}")
    if absent:
        yield good(f"extras not installed, needed for: {'; '.join(absent.values())}")


def check_limits(wanted: int, loader_threads: int) -> Iterator[Finding]:
    """Open files, processors and shared memory, which several GPUs talk through."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if 0 <= files < FEWEST_FILES:
        yield doubtful(f"only {files} files may be open", f"ulimit -n {4 * FEWEST_FILES}")
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    needed = wanted * max(1, loader_threads)
    if cores < needed:
        yield doubtful(
            f"{cores} processors for {wanted} processes with {loader_threads} loading threads each",
            f"ask the scheduler for {needed}, or set runtime.loader_threads",
        )
    else:
        yield good(f"{cores} processors, {files} open files")
    shared = Path("/dev/shm")
    if wanted > 1 and shared.is_dir() and shutil.disk_usage(shared).free < SHARED_MEMORY:
        free = format_bytes(shutil.disk_usage(shared).free)
        yield doubtful(
            f"/dev/shm has only {free}: NCCL may fail between the GPUs of a node",
            "start the container with --shm-size=8g or --ipc=host",
        )


def check_compilation(device: torch.device) -> Iterator[Finding]:
    """Whether torch.compile works: it is tried."""

    def check() -> Iterator[Finding]:
        check_compiler(device)
        yield good("runtime.compile=true: a trial compiled")

    return catch(check, "install a compiler, or leave runtime.compile=false")
