"""Asked to stop, by a signal, a key or a closed terminal: a checkpoint, and nothing left behind."""

import json
import time
from pathlib import Path

import pytest

from tests.faults import moments
from tests.faults.runs import (
    HANG,
    TRAPPED,
    assert_ends_like,
    assert_on_the_way,
    launch_trapped,
    wait_for,
)
from tests.faults.terminals import INTERRUPT, Terminal
from tests.small_runs import train_command

PREEMPTED, INTERRUPTED = 75, 130


@pytest.fixture(autouse=True)
def _no_shared_memory_is_left_behind():
    """A segment that came and that no living process holds is one that somebody forgot."""
    before = set(Path("/dev/shm").iterdir())
    yield
    deadline = time.monotonic() + 5  # others on this machine may be between making and mapping
    while forgotten := find_forgotten(before):
        assert time.monotonic() < deadline, forgotten
        time.sleep(0.1)


def find_forgotten(before):
    came = set(Path("/dev/shm").iterdir()) - before
    held = "".join(read_maps(each) for each in Path("/proc").glob("[0-9]*/maps")) if came else ""
    return [path for path in came if str(path) not in held]


def read_maps(path):
    try:
        return path.read_text()
    except OSError:
        return ""


def resume(folder, again, trace, num_processes, reference):
    """Go on to the end, and end like a run that nobody interrupted."""
    code, printed = launch_trapped([*again, "resume=true"], trace, num_processes).end()
    assert code == 0, printed
    assert_ends_like(folder, reference)


@pytest.fixture
def folder(runs, request):
    return runs / request.node.name.translate(str.maketrans("[-]", "___"))


@pytest.fixture
def trace(folder):
    return folder.with_suffix(".trace")


@pytest.mark.parametrize("num_processes", [1, 2])
def test_sigterm(words, references, folder, trace, num_processes):
    """To the launcher, where there is one, as a cluster's scheduler does."""
    again = [*words, f"name={folder.name}"]
    process = launch_trapped(again, trace, num_processes)
    wait_for(trace, "step", process)
    process.terminate()
    code, printed = process.end()
    assert code == PREEMPTED, printed
    assert printed.count("stopped on request; resume=true goes on") == 1
    assert assert_on_the_way(folder, references[num_processes]) < 20
    resume(folder, again, trace, num_processes, references[num_processes])


def open_terminal(words, folder, trace, num_processes, **trap):
    """Train in a terminal, with the progress bar."""
    words = [*words, f"name={folder.name}", TRAPPED, "runtime.show_progress=true"]
    command = train_command(words, num_processes)
    terminal = Terminal(command, TRACE=str(trace), TRAP=json.dumps(trap))
    wait_for(trace, "step", terminal.process)
    return terminal


@pytest.mark.parametrize("num_processes", [1, 2])
def test_interrupted_once(words, references, folder, trace, num_processes):
    terminal = open_terminal(words, folder, trace, num_processes)
    terminal.press(INTERRUPT)
    code, shown = terminal.end()
    assert code == PREEMPTED, shown
    assert "stopped on request; resume=true goes on" in shown
    assert 0 < assert_on_the_way(folder, references[num_processes]) < 20


@pytest.mark.parametrize("num_processes", [1, 2])
def test_terminal_closed(words, references, folder, trace, num_processes):
    """The progress bar has nowhere to go any more; the checkpoint has."""
    terminal = open_terminal(words, folder, trace, num_processes)
    terminal.hang_up()
    code, _ = terminal.end()
    assert code == PREEMPTED
    assert 0 < assert_on_the_way(folder, references[num_processes]) < 20


def test_interrupted_twice(words, references, folder, trace):
    """The second time while a step takes long: it ends at once; what is on disk is sound."""
    trap = {"place": moments.IN_STEP, "passage": 25, "action": "pause"}
    terminal = open_terminal(words, folder, trace, 1, **trap)
    wait_for(trace, "pause", terminal.process)
    start = time.monotonic()
    for _ in range(2):
        terminal.press(INTERRUPT)
        time.sleep(0.3)
    code, shown = terminal.end()
    assert code == INTERRUPTED, shown
    assert time.monotonic() - start < 8
    assert "interrupted" in shown
    assert "Traceback" not in shown
    assert assert_on_the_way(folder, references[1]) == 21  # of the epoch's end
    resume(folder, [*words, f"name={folder.name}"], trace, 1, references[1])


def test_nobody_reads_any_more(words, references, folder, trace):
    """The reader of a pipe ends (make train | tee): the run goes on, and can be stopped."""
    again = [*words, f"name={folder.name}", "runtime.show_progress=true"]
    process = launch_trapped(again, trace)
    wait_for(trace, "step", process)
    process.stdout.close()
    assert process.wait(timeout=HANG) == 0
    assert_ends_like(folder, references[1])
