"""Stopped by a signal, a key or a closed terminal: a checkpoint is saved and nothing is left."""

import json
import time
from pathlib import Path

import pytest

from mcan.checkpoint import load_checkpoint
from scripts.cluster.planned_run import PlannedRun
from scripts.paper.provenance import describe_run
from tests.faults import moments
from tests.faults.runs import (
    TRAPPED,
    Run,
    assert_matches_reference,
    hold_in_step,
    launch_trapped,
    wait_for,
)
from tests.faults.terminals import INTERRUPT, Terminal
from tests.small_runs import HANG, assert_ends_like, train_command

PREEMPTED, INTERRUPTED = 75, 130
HELD = 6  # the step that waits for the request
SOON_AFTER = range(HELD, HELD + 3)  # processes agree one step later


@pytest.fixture(autouse=True)
def _no_shared_memory_is_left_behind():
    """A new segment that no running process has mapped is a leak."""
    before = set(Path("/dev/shm").iterdir())
    yield
    # another process may have created one and not mapped it yet
    deadline = time.monotonic() + HANG / 5
    while leaked := find_leaked(before):
        assert time.monotonic() < deadline, leaked
        time.sleep(0.1)


def find_leaked(before):
    created = set(Path("/dev/shm").iterdir()) - before
    mapped = (
        "".join(read_maps(each) for each in Path("/proc").glob("[0-9]*/maps")) if created else ""
    )
    return [path for path in created if str(path) not in mapped]


def read_maps(path):
    try:
        return path.read_text()
    except OSError:
        return ""


def resume(folder, again, trace, num_processes, reference):
    """Resume to the end; the result equals that of an uninterrupted run."""
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
    """Sent to the launcher, if there is one, as a cluster's scheduler does: no crash to repeat."""
    again = [*words, f"name={folder.name}", "runtime.max_restarts=1"]
    process = hold_in_step(again, trace, HELD, num_processes)
    process.terminate()
    code, printed = process.end()
    assert code == PREEMPTED, printed
    assert printed.count("stopped on request; resume=true continues") == 1
    assert "Traceback" not in printed
    assert assert_matches_reference(folder, references[num_processes]) in SOON_AFTER
    resume(folder, again, trace, num_processes, references[num_processes])


@pytest.mark.parametrize("num_processes", [1, 2])
def test_sigterm_in_validation(words, folder, trace, num_processes):
    """The checkpoint is from before the validation, which begins again after resume=true."""
    words = [*words, "optim.epochs=1", "runtime.evaluation_batch_size=1"]  # 60 batches
    again, reference = [*words, f"name={folder.name}"], folder.with_name(f"{folder.name}_whole")
    whole = train_command([*words, f"name={reference.name}"], num_processes)
    code, printed = Run(whole).end()
    assert code == 0, printed
    trap = {"place": moments.IN_VALIDATION, "passage": 3, "action": "hold"}
    process = launch_trapped(again, trace, num_processes, **trap)
    wait_for(trace, "hold", process)
    process.terminate()
    code, printed = process.end()
    assert code == PREEMPTED, printed
    content, ended = (load_checkpoint(path / "last.pt") for path in (folder, reference))
    assert content["lines"] == []
    assert content["progress"]["epoch"] == 1
    assert content["progress"]["step"] == ended["progress"]["global_step"]
    resume(folder, again, trace, num_processes, reference)
    (line,) = load_checkpoint(folder / "last.pt")["lines"]
    assert "questions_per_second" not in line  # no step was left to time
    described = describe_run(PlannedRun(folder, ()))
    assert described.startswith("1 epochs in ")


def open_terminal(words, folder, trace, num_processes, action="hold", passage=HELD):
    """Train in a terminal, with the progress bar, up to a step that waits there."""
    words = [*words, f"name={folder.name}", TRAPPED, "runtime.show_progress=true"]
    command = train_command(words, num_processes)
    trap = {"place": moments.IN_STEP, "passage": passage, "action": action}
    terminal = Terminal(command, TRACE=str(trace), TRAP=json.dumps(trap))
    wait_for(trace, action, terminal.process)
    return terminal


@pytest.mark.parametrize("num_processes", [1, 2])
def test_interrupted_once(words, references, folder, trace, num_processes):
    terminal = open_terminal(words, folder, trace, num_processes)
    terminal.press(INTERRUPT)
    code, shown = terminal.end()
    assert code == PREEMPTED, shown
    assert "stopped on request; resume=true continues" in shown
    assert assert_matches_reference(folder, references[num_processes]) in SOON_AFTER


@pytest.mark.parametrize("num_processes", [1, 2])
def test_terminal_closed(words, references, folder, trace, num_processes):
    """The progress bar can no longer be printed; the checkpoint is saved."""
    terminal = open_terminal(words, folder, trace, num_processes)
    terminal.hang_up()
    code, _ = terminal.end()
    assert code == PREEMPTED
    assert assert_matches_reference(folder, references[num_processes]) in SOON_AFTER


@pytest.mark.parametrize("num_processes", [1, 2])
def test_interrupted_twice(words, references, folder, trace, num_processes):
    """The second time during a long step: it ends at once; the checkpoint on disk is valid."""
    terminal = open_terminal(words, folder, trace, num_processes, "pause", 25)
    terminal.press(INTERRUPT)
    wait_for(trace, "asked to stop", terminal.process)  # and the step, of an hour, goes on
    terminal.press(INTERRUPT)
    code, shown = terminal.end()
    assert code == INTERRUPTED, shown
    assert "interrupted" in shown
    assert "Traceback" not in shown
    reference = references[num_processes]
    assert assert_matches_reference(folder, reference) == 21  # the end of the epoch
    resume(folder, [*words, f"name={folder.name}"], trace, num_processes, reference)


def test_the_reader_of_the_output_ends(words, references, folder, trace):
    """The reader of a pipe ends (make train | tee): the run continues to its end."""
    again = [*words, f"name={folder.name}", "runtime.show_progress=true"]
    process = launch_trapped(again, trace)
    wait_for(trace, "step", process)
    process.stdout.close()
    assert process.wait(timeout=HANG) == 0
    assert_ends_like(folder, references[1])
