import os

import pytest

from mcan.runtime.loader_threads import choose_loader_threads
from mcan.runtime.settings import Runtime
from scripts.doctor.environment import check_limits


@pytest.fixture
def machine(monkeypatch):
    """A number of processors, and of processes that torchrun started."""

    def make(num_processors, num_processes=None):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(num_processors)))
        monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
        if num_processes is not None:
            monkeypatch.setenv("LOCAL_WORLD_SIZE", str(num_processes))

    return make


@pytest.mark.parametrize(
    ("num_processors", "num_processes", "threads"),
    [(1, None, 2), (6, None, 6), (64, None, 8), (6, 1, 6), (24, 4, 6), (64, 4, 8), (4, 4, 2)],
)
def test_each_process_reads_with_its_share_of_the_processors(
    machine, num_processors, num_processes, threads
):
    machine(num_processors, num_processes)
    assert choose_loader_threads(Runtime()) == threads
    assert choose_loader_threads(Runtime(reader="pread")) == 2 * threads


def test_small_images_in_memory_are_read_without_threads(machine):
    machine(6)
    small, large = 80 * 101 * 2, 506 * 2048 * 2
    assert choose_loader_threads(Runtime(), small) == 0
    assert choose_loader_threads(Runtime(), large) == 6
    assert choose_loader_threads(Runtime(reader="pread"), small) == 12
    assert choose_loader_threads(Runtime(loader_threads=3), small) == 3


@pytest.mark.parametrize("asked", [0, 1, 3, 40])
def test_a_number_that_is_asked_for_is_taken(machine, asked):
    machine(16, 2)
    assert choose_loader_threads(Runtime(loader_threads=asked, reader="pread")) == asked


@pytest.mark.parametrize(
    ("num_processors", "runtime", "level", "text"),
    [
        (24, Runtime(), "OK", "24 processors for 4 processes with 6 loading threads each"),
        (24, Runtime(reader="pread"), "OK", "with 12 loading threads each"),
        (4, Runtime(), "WARNING", "4 processors for 4 processes with 2 loading threads each"),
        (24, Runtime(loader_threads=8), "WARNING", "with 8 loading threads each"),
        (24, Runtime(loader_threads=0), "OK", "with 0 loading threads each"),
    ],
)
def test_the_doctor_says_how_many_threads_will_read(machine, num_processors, runtime, level, text):
    machine(num_processors)
    (found,) = [each for each in check_limits(4, runtime) if "processors" in each.text]
    assert found.level == level
    assert text in found.text
