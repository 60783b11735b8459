"""The default run on `shapes`, alone and beside one busy process per core.

Its own number of threads of torch is compared with torch's default: threads wait for each other at
every operation, and beside other programs the waiting takes most of the time.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch
from tqdm import tqdm

from benchmarks.measurement import Part, Row, as_measurements, ratios
from data.shapes.build import Sizes, build_shapes
from data.text.word_lists import prepare_words
from data.vqa.data_folder import DataFolder
from mcan.runtime.distributed import World
from mcan.runtime.stop_request import StopRequest
from mcan.training.loop import Progress, TrainingRun
from mcan.training.run import build_run
from mcan.training.settings import TrainingSettings

SHAPES = Sizes(train=80, val=40, test=4, human=0)  # 800 questions to train on, 400 to validate
TRAINING, VALIDATION = "training", "validation"
CHOSEN, DEFAULT = "chosen threads", "torch's default threads"
ALONE, CROWDED = "alone", "beside one busy process per core"
# a program that computes without end, until its parent is gone
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"


def measure(
    settings: TrainingSettings,
    rounds: int = 5,
    num_steps: int = 20,
    sizes: Sizes = SHAPES,
) -> Part:
    """The rows of the slowdown, and questions per second of both numbers of threads."""
    num_threads = torch.get_num_threads()
    with tempfile.TemporaryDirectory(prefix="crowded-") as name:
        build_shapes(Path(name) / "shapes", sizes=sizes)
        try:
            runs = open_runs(settings, Path(name) / "shapes", num_steps)
            rates = measure_rates(runs, rounds)
        finally:
            torch.set_num_threads(num_threads)
    chosen = runs[CHOSEN].contents["num_threads"]
    return Part(
        [slowdown_row(rates, phase) for phase in (TRAINING, VALIDATION)],
        as_measurements(f"default run ({chosen} of {num_threads})", rates, "questions/s"),
    )


def slowdown_row(rates: dict[str, list[float]], phase: str) -> Row:
    """How many times longer a phase of the run takes when the machine is crowded."""
    alone, crowded = (rates[f"{phase}, {CHOSEN}, {place}"] for place in (ALONE, CROWDED))
    return Row(
        f"{phase} of the default run {CROWDED}, slowdown", ALONE, "≤ 2", ratios(alone, crowded)
    )


def open_runs(settings: TrainingSettings, root: Path, num_steps: int) -> dict[str, TrainingRun]:
    """The run as `make train` has it, in epochs of a few steps, and with torch's threads."""
    runtime = replace(settings.runtime, device="cpu", limit_batches=num_steps)
    settings = replace(settings, data=replace(settings.data, root=str(root)), runtime=runtime)
    folder, world = DataFolder(root), World(0, 1, torch.device("cpu"))
    words = prepare_words(folder)
    few = max(1, num_steps // 4)  # crowded, these take many times as long
    untold = replace(runtime, num_threads=torch.get_num_threads(), limit_batches=few)
    runs = {}
    for name, each in ((DEFAULT, untold), (CHOSEN, runtime)):
        torch.manual_seed(settings.seed)
        runs[name] = build_run(replace(settings, runtime=each), folder, words, world, None)
    return runs


def measure_rates(runs: dict[str, TrainingRun], rounds: int) -> dict[str, list[float]]:
    """Questions per second of each run, alone and crowded; a round that warms up goes before."""
    rates: dict[str, list[float]] = {}
    for number in tqdm(range(rounds + 1), desc="crowded", leave=False):
        for place, num_busy in ((ALONE, 0), (CROWDED, len(os.sched_getaffinity(0)))):
            with busy_processes(num_busy):
                for name, run in runs.items():
                    measured = {TRAINING: time_epoch(run), VALIDATION: time_validation(run)}
                    for phase, rate in measured.items():
                        if number > 0:
                            rates.setdefault(f"{phase}, {name}, {place}", []).append(rate)
    return rates


def time_epoch(run: TrainingRun) -> float:
    """Questions per second of a run's first epoch, always the same steps."""
    torch.set_num_threads(run.contents["num_threads"])
    run.progress = Progress()
    start = time.perf_counter()
    run.train_epoch(StopRequest())
    return run.progress.num_questions / (time.perf_counter() - start)


def time_validation(run: TrainingRun) -> float:
    """Questions per second of a run's validation."""
    torch.set_num_threads(run.contents["num_threads"])
    start = time.perf_counter()
    run.validate(StopRequest())
    return len(run.validation.question_ids) / (time.perf_counter() - start)


@contextmanager
def busy_processes(number: int) -> Iterator[Sequence[subprocess.Popen[bytes]]]:
    """Processes that compute without end, while it is entered."""
    processes = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(number)]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()
