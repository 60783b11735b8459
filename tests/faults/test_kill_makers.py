"""kill -9 while a store is staged, extracted or converted or `shapes` is drawn: the same bytes."""

import contextlib
import os
import shutil
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from data.vqa.data_folder import DataFolder
from tests.data.features.sample_features import write_sample
from tests.faults.fuzzing import draw_case
from tests.faults.length import Length, read_length
from tests.faults.runs import Run, assert_is_over, members
from tests.small_models import listing
from tests.small_runs import HANG

AT_LENGTH = 5  # kills of each with --kills, one without
STAGE = "import sys; from data.features.staging import stage_store; stage_store(*sys.argv[1:])"
DRAW = """
import sys
from pathlib import Path
from data.shapes.build import Sizes, build_shapes
sizes = Sizes(train=12, val=6, test=4, human=12)
build_shapes(Path(sys.argv[1]) / "shapes", sizes=sizes, num_workers=2)
"""


@dataclass(frozen=True)
class Making:
    """Files that are made, and how often that is killed."""

    what: str
    num_kills: int

    def __str__(self) -> str:
        return f"{self.what} killed {self.num_kills} times"


def list_makings(length: Length) -> list[Making]:
    number = 1 if length.kills is None else AT_LENGTH
    return [Making(what, number) for what in ("staging", "features", "extract", "shapes")]


def pytest_generate_tests(metafunc):
    if "making" in metafunc.fixturenames:
        metafunc.parametrize("making", list_makings(read_length(metafunc.config)), ids=str)


@pytest.fixture
def command(making, small_dataset, tmp_path):
    """A command that makes files in the folder `out` for a second or so."""
    output, source = tmp_path / "out", tmp_path / "source"
    source.mkdir()
    python = [sys.executable, "-c"]
    if making.what == "staging":
        sizes = dict.fromkeys(range(1, 9), (100, 100))
        write_sample(source / "x.h5", sizes=sizes, num_features=500)
        return [*python, STAGE, str(source / "x.h5"), str(output)]
    if making.what == "shapes":
        return [*python, DRAW, str(output)]
    words = ["resize=null", "num_threads=1", f"output={output / 'x.h5'}"]
    if making.what == "features":
        for number in range(300):
            torch.save(torch.full((1, 256, 10, 10), float(number)), source / f"{number}.pth")
        return [sys.executable, "-m", "scripts.features", f"source={source}", *words]
    pictures = sorted(DataFolder(small_dataset).image_folder("train").iterdir())
    for number in range(100):
        shutil.copy(pictures[number % len(pictures)], source / f"{number}.png")
    return [sys.executable, "-m", "scripts.extract", f"images={source}", *words]


def kill_while_it_writes(command, output, delay):
    """Kill a command some time after its first file; what it left there, or None at its end."""
    process, deadline = Run(command), time.monotonic() + HANG
    while not any(files for _, _, files in os.walk(output)) and process.poll() is None:
        assert time.monotonic() < deadline, "nothing was written"
        time.sleep(0.002)
    time.sleep(delay)
    if process.poll() is not None:
        code, printed = process.end()
        assert code == 0, printed
        return None
    for number in members(process.run):
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            # Python's own process that removes semaphores when the others are gone is left alone
            if b"resource_tracker" not in Path(f"/proc/{number}/cmdline").read_bytes():
                os.kill(number, signal.SIGKILL)
    process.communicate()
    assert_is_over(process.run)
    return listing(output)


def make_whole(command, output):
    """All files, made without a fault."""
    code, printed = Run(command).end()
    assert code == 0, printed
    return listing(output)


def test_killed_while_files_are_made(making, length, command, tmp_path, kill_log):
    """A file under its final name is complete, and the same command makes the same bytes."""
    chance, output, kills = draw_case(length.seed, making.what, 0), tmp_path / "out", []
    output.mkdir()
    whole = make_whole(command, output)
    empty(output)
    with length.keep(making, {"kills": kills}):
        while len(kills) < making.num_kills:
            left = kill_while_it_writes(command, output, chance.uniform(0, 0.5))
            is_complete = left is None or whole.keys() <= left.keys()  # it was killed too late
            left = listing(output)
            assert all(left[name] == whole[name] for name in left.keys() & whole.keys())
            if is_complete:
                assert whole.keys() <= left.keys()
                empty(output)
                continue
            kills.append(kill_log(f"{making.what}: {len(left)} files are there"))
        assert make_whole(command, output) == whole


def empty(folder):
    shutil.rmtree(folder)
    folder.mkdir()
