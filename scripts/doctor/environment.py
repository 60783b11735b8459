"""What training needs of the system around it: versions, extras, limits, a compiler."""

import functools
import importlib.metadata
import math
import platform
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path

import torch

from data.io.disk_space import format_bytes
from data.io.threads import choose_threads
from mcan.runtime.compilation import check_compiler
from mcan.runtime.loader_threads import LEAST, choose_loader_threads
from mcan.runtime.settings import Runtime
from scripts.doctor.finding import Finding, ok, warning

CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"
EXTRAS = {
    "matplotlib": "figures (make install)",
    "gradio": "make demo (which installs it)",
    "hydra-submitit-launcher": "make sweep LAUNCHER=slurm (which installs it)",
}
FEWEST_FILES = 1024
SHARED_MEMORY = 1 << 30


def check_versions(constraints: Path = CONSTRAINTS) -> Iterator[Finding]:
    """Installed versions against the pinned ones."""
    if not constraints.is_file():
        yield warning(
            f"{constraints} is not there, so versions cannot be compared",
            "run from a clone of the repository",
        )
        return
    lines = constraints.read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if "==" in line and line[0] != "#")
    found = {name: find_version(name) for name in pinned}
    others = [
        f"{name} {found[name]} instead of {version}"
        for name, version in pinned.items()
        if found[name] and found[name].split("+")[0] != version.split("+")[0]
    ]
    text = f"Python {platform.python_version()}, torch {torch.__version__}"
    if others:
        text += f"; versions that were not tested: {', '.join(others)}"
        yield warning(text, "make clean and make install put the pinned ones there")
    else:
        yield ok(f"{text}; all versions are those of {constraints.name}")


@functools.cache
def find_version(name: str) -> str:
    """The installed version of a package; empty where there is none."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def check_extras(figures: int) -> Iterator[Finding]:
    """What is optional; a run that is to draw figures needs matplotlib."""
    there = [name for name in EXTRAS if find_version(name)]
    if figures and "matplotlib" not in there:
        yield warning(
            f"matplotlib is not installed: the {figures} figures at the end will not be drawn",
            "make install, or figures=0",
        )
    if there:
        yield ok(f"extras installed: {', '.join(there)}")
    if len(there) < len(EXTRAS):
        uses = "; ".join(use for name, use in EXTRAS.items() if name not in there)
        yield ok(f"extras not installed, needed for: {uses}")


def check_limits(
    num_processes: int, runtime: Runtime, image_bytes: float = math.inf
) -> Iterator[Finding]:
    """Open files, processors and shared memory, through which several GPUs communicate."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if 0 <= files < FEWEST_FILES:
        yield warning(f"only {files} files may be open", f"ulimit -n {4 * FEWEST_FILES}")
    cores, threads = choose_threads(0), choose_loader_threads(runtime, image_bytes, num_processes)
    asked = LEAST if threads and runtime.loader_threads is None else max(1, threads)
    text = f"{cores} processors for {num_processes} processes with {threads} loading threads each"
    if cores < num_processes * asked:
        advice = f"ask the scheduler for {num_processes * asked}, or set runtime.loader_threads"
        yield warning(text, advice)
    else:
        yield ok(f"{text}, {files} open files")
    shared = Path("/dev/shm")
    if num_processes > 1 and shared.is_dir():
        free = shutil.disk_usage(shared).free
        if free < SHARED_MEMORY:
            yield warning(
                f"/dev/shm has only {format_bytes(free)}: NCCL may fail between the GPUs of a node",
                "start the container with --shm-size=8g or --ipc=host",
            )


def check_compilation(device: torch.device) -> Iterator[Finding]:
    """Whether torch.compile works: it is tried."""
    check_compiler(device)
    yield ok("runtime.compile=true: a trial compiled")
