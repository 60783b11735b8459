"""What a process holds while it runs: memory, open files and threads, and whether they grow."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from statistics import median


@dataclass(frozen=True)
class Sample:
    """What a process holds at one moment."""

    seconds: float  # since the start
    megabytes: float  # resident memory
    num_files: int  # open descriptors
    num_threads: int

    def __str__(self) -> str:
        return (
            f"{self.seconds:7.0f} s {self.megabytes:9.1f} MB "
            f"{self.num_files:4} files {self.num_threads:3} threads"
        )


def take_sample(process_id: int, seconds: float) -> Sample:
    """What the system says of a process."""
    status = Path(f"/proc/{process_id}/status").read_text()
    kilobytes = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
    num_threads = re.search(r"^Threads:\s+(\d+)", status, re.MULTILINE)
    assert kilobytes is not None
    assert num_threads is not None
    num_files = len(os.listdir(f"/proc/{process_id}/fd"))
    return Sample(seconds, int(kilobytes[1]) / 1000, num_files, int(num_threads[1]))


def find_growth(samples: list[Sample], warm_up: float, tolerance: float) -> list[str]:
    """What grew from the first quarter after the warm-up to the last one.

    Memory goes up and down during an epoch, so medians are compared; of files and threads, the
    highest numbers.
    """
    steady = samples[round(warm_up * len(samples)) :]
    if len(steady) < 8:
        raise ValueError(f"{len(steady)} samples are too few to compare; give it more minutes")
    first, last = steady[: len(steady) // 4], steady[-(len(steady) // 4) :]
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
