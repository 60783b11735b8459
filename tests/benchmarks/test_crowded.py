"""The default run of the benchmark is that of `make train`, and busy processes end."""

import os

import pytest
import torch

from benchmarks.parts.crowded import CHOSEN, DEFAULT, busy_processes, open_runs, time_epoch
from scripts.train import main

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")


@pytest.fixture
def runs(small_dataset):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    (settings,) = main.compose([])
    yield open_runs(settings, small_dataset, num_steps=2)
    torch.set_num_threads(before)


def test_only_threads_and_the_number_of_steps_differ(runs):
    assert runs[CHOSEN].contents["num_threads"] == 1
    assert runs[DEFAULT].contents["num_threads"] == 2
    one, other = (run.model.state_dict() for run in runs.values())
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert runs[CHOSEN].data.sampler.num_steps == 2
    assert runs[DEFAULT].data.sampler.num_steps == 1


def test_an_epoch_is_the_same_steps_again(runs):
    run, asked = runs[CHOSEN], []
    for _ in range(2):
        assert time_epoch(run) > 0
        assert (run.progress.epoch, run.progress.global_step) == (1, 2)
        assert torch.get_num_threads() == 1
        asked.append(run.progress.num_questions)
    assert asked[0] == asked[1] > 0


def test_busy_processes_run_while_they_are_needed():
    with busy_processes(2) as processes:
        assert [process.poll() for process in processes] == [None, None]
    assert all(process.poll() is not None for process in processes)
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process.pid, 0)
