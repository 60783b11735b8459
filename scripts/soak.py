"""make soak: a long training in small form, whose memory and open files must not grow.

python -m scripts.soak minutes=30
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from omegaconf import DictConfig

from data.shapes.build import Sizes, build_shapes
from mcan.stopping import PREEMPTED
from scripts.entry import command

SCENES = Sizes(train=40, val=20, test=4, human=4)
# short epochs: validation, checkpoints and TensorBoard's pictures come often
SMALL = [
    "data=custom", "model=tiny", "optim.epochs=1000000", "optim.batch_size=16",
    "runtime.checkpoint_every_minutes=0.1", "runtime.num_threads=1", "runtime.show_progress=false",
    "figures=0", "name=soak",
]  # fmt: skip


@dataclass(frozen=True)
class Sample:
    """What a process holds at one moment."""

    seconds: float  # since the start
    megabytes: float  # resident memory
    num_files: int  # open descriptors
    num_threads: int


@command("soak")
def main(config: DictConfig) -> None:
    """Train for the time asked for, print samples, judge them."""
    if config.minutes <= 0 or config.samples_per_minute < 1 or not 0 <= config.warm_up < 1:
        raise ValueError("soak needs minutes > 0, samples_per_minute ≥ 1 and warm_up in [0, 1)")
    with tempfile.TemporaryDirectory() as folder:
        build_shapes(Path(folder) / "data", sizes=SCENES, num_workers=1)
        words = [*SMALL, f"data.root={folder}/data", f"runs={folder}", *shlex.split(config.train)]
        samples = list(train_and_watch(words, 60 * config.minutes, 60 / config.samples_per_minute))
        num_epochs = len((Path(folder) / "soak" / "metrics.jsonl").read_text().splitlines())
    problems = judge(samples, config.warm_up, config.tolerance)
    print(f"{len(samples)} samples, {num_epochs} epochs with validation", flush=True)
    if problems:
        print(f"GROWS: {'; '.join(problems)}")
        sys.exit(1)
    print(f"FLAT: memory within {config.tolerance:g} %, files and threads as many as before")


def train_and_watch(words: list[str], seconds: float, interval: float) -> Iterator[Sample]:
    """Samples of a training that is stopped on request in the end; each is printed."""
    process = subprocess.Popen([sys.executable, "-m", "scripts.train", *words])
    start = time.monotonic()
    try:
        while (elapsed := time.monotonic() - start) < seconds:
            time.sleep(min(interval, seconds - elapsed))
            if process.poll() is not None:
                raise ValueError(f"the training ended by itself with exit code {process.poll()}")
            sample = take_sample(process.pid, time.monotonic() - start)
            print(
                f"{sample.seconds:7.0f} s {sample.megabytes:9.1f} MB "
                f"{sample.num_files:4} files {sample.num_threads:3} threads",
                flush=True,
            )
            yield sample
        process.send_signal(signal.SIGTERM)
        if process.wait(timeout=120) != PREEMPTED:
            raise ValueError(f"asked to stop, the training ended with exit code {process.poll()}")
    finally:
        process.kill()
        process.wait()


def take_sample(number: int, seconds: float) -> Sample:
    """What the system says of a process."""
    status = Path(f"/proc/{number}/status").read_text()
    kilobytes = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
    num_threads = re.search(r"^Threads:\s+(\d+)", status, re.MULTILINE)
    assert kilobytes is not None
    assert num_threads is not None
    num_files = len(os.listdir(f"/proc/{number}/fd"))
    return Sample(seconds, int(kilobytes[1]) / 1000, num_files, int(num_threads[1]))


def judge(samples: list[Sample], warm_up: float, tolerance: float) -> list[str]:
    """What grew from the first quarter after the warm-up to the last one.

    Memory goes up and down with what is going on, so medians are compared; of files and threads,
    the highest numbers.
    """
    judged = samples[round(warm_up * len(samples)) :]
    if len(judged) < 8:
        raise ValueError(f"{len(judged)} samples are too few to judge; give it more minutes")
    first, last = judged[: len(judged) // 4], judged[-(len(judged) // 4) :]
    before, after = (median(sample.megabytes for sample in part) for part in (first, last))
    problems = []
    if after > before * (1 + tolerance / 100):
        grown = 100 * (after / before - 1)
        problems.append(f"memory from {before:.1f} to {after:.1f} MB, by {grown:.1f} %")
    for name in ("num_files", "num_threads"):
        before, after = (max(getattr(sample, name) for sample in part) for part in (first, last))
        if after > before:
            problems.append(f"{name.removeprefix('num_')} from {before} to {after}")
    return problems


if __name__ == "__main__":
    main()
