"""Several runs open one folder at the same moment: exactly one of them trains."""

import multiprocessing
import shutil
import tempfile

import pytest

from mcan.training.run_folder import RunFolder
from tests.faults.runs import Run
from tests.small_runs import AT_EVERY_STEP, HANG, assert_ends_like, end_state, train_command

REJECTED = 2


def run_together(num_runs, overrides):
    """Start runs that open the folder at the same moment: their exit codes and outputs."""
    command = train_command([*overrides, "modules=[tests.faults.gate]"])
    with tempfile.TemporaryDirectory() as gate:
        runs = [Run(command, GATE=gate, NUM_RUNS=str(num_runs)) for _ in range(num_runs)]
        return [run.end() for run in runs]


@pytest.mark.parametrize("attempt", range(2))
def test_four_runs_start_in_one_folder(words, runs, attempt):
    name = f"concurrent_{attempt}"
    ended = run_together(4, [*words, f"name={name}", "optim.epochs=1"])
    assert sorted(code for code, _ in ended) == [0, REJECTED, REJECTED, REJECTED], ended
    for code, printed in ended:
        assert code == 0 or f"{name} exists already" in printed
    assert len(end_state(runs / name)["metrics"]) == 1


def test_one_run_is_resumed_twice_at_once(words, references, runs):
    folder = runs / "resumed_twice"
    folder.mkdir()
    for name in ("step_00000050.pt", "best.pt"):
        shutil.copy(references[1] / name, folder)
    ended = run_together(2, [*words, f"name={folder.name}", "resume=true", AT_EVERY_STEP])
    assert sorted(code for code, _ in ended) == [0, REJECTED], ended
    assert any("another process is training in" in printed for _, printed in ended)
    assert_ends_like(folder, references[1])


def compete(folder, resume, num_rounds, barrier, wins):
    """Open the same folders as the others, at the same moments."""
    for number in range(num_rounds):
        barrier.wait()
        try:
            opened = RunFolder(folder / str(number), resume)
        except ValueError:
            opened = None
        barrier.wait()
        if opened is not None:
            wins[number] += 1
            opened.close()


@pytest.mark.parametrize("resume", [False, True])
def test_four_processes_open_a_folder_a_hundred_times(tmp_path, resume):
    num_rounds, num_processes = 100, 4
    if resume:
        for number in range(num_rounds):
            (tmp_path / str(number)).mkdir()
    context = multiprocessing.get_context("fork")
    barrier, wins = context.Barrier(num_processes), context.Array("i", num_rounds)
    processes = [
        context.Process(target=compete, args=(tmp_path, resume, num_rounds, barrier, wins))
        for _ in range(num_processes)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(HANG)
        assert process.exitcode == 0
    assert list(wins) == [1] * num_rounds
