"""The runs of a report: which are trained side by side, and what is checked before."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from scripts.cluster.planned_run import PlannedRun
from scripts.paper import __main__ as paper
from scripts.paper.runs import HEADS, plan_runs, train_runs
from tests.small_models import run_here


@dataclass(frozen=True)
class Noted(PlannedRun):
    """A run that notes when it begins and ends, and how."""

    kind: str
    program: str

    def start_arguments(self, num_processes):
        return ["-c", f"{NOTE}{self.program}\nnote('end')", str(self.folder)]


NOTE = """
import os, pathlib, signal, sys, time
def note(event):
    with open(sys.argv[1] + '.txt', 'a') as file:
        gpu = os.environ.get('CUDA_VISIBLE_DEVICES')
        print(event, time.monotonic(), os.environ.get('OMP_NUM_THREADS'), gpu, file=file)
def find_others():
    return [*pathlib.Path(sys.argv[1]).parent.glob('*.here')]
note('begin')
"""
PREPARE = """
note('prepared')
os.mkdir(sys.argv[1])
"""
MEET = (
    PREPARE
    + """
pathlib.Path(sys.argv[1] + '.here').touch()
while len(find_others()) < 2: time.sleep(0.01)
"""
)
STOP = (
    PREPARE
    + """
signal.signal(signal.SIGTERM, lambda *_: (note('asked'), sys.exit(75)))
pathlib.Path(sys.argv[1] + '.here').touch()
time.sleep(600)
"""
)
FAIL = """
while not find_others(): time.sleep(0.01)
sys.exit(3)
"""


def read_notes(run):
    """The times of a run's events, and the threads and the GPU it was given."""
    lines = [line.split() for line in Path(f"{run.folder}.txt").read_text().splitlines()]
    return {event: float(moment) for event, moment, *_ in lines}, {tuple(at[2:]) for at in lines}


def test_parallel_runs_train_together_and_fine_tuning_waits_for_all_of_them(tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    kinds = [("discrete", MEET), ("discrete → multimodal", ""), ("unimodal", MEET), ("a", "")]
    runs = [Noted(tmp_path / str(n), (), kind, program) for n, (kind, program) in enumerate(kinds)]
    train_runs(runs, 1, parallel=2)
    times, given = zip(*map(read_notes, runs), strict=True)
    assert times[0]["prepared"] < times[2]["begin"] < times[0]["end"]
    assert times[1]["begin"] > max(times[n]["end"] for n in (0, 2, 3))
    assert times[3]["begin"] > min(times[n]["end"] for n in (0, 2))
    num_threads = str(max(1, len(os.sched_getaffinity(0)) // 2))
    assert given[0] == {(num_threads, "0")}
    assert given[2] == {(num_threads, "1")}


def test_a_run_that_fails_asks_those_beside_it_to_stop_and_starts_no_other(tmp_path):
    programs = [STOP, FAIL, ""]
    runs = [Noted(tmp_path / str(n), (), "a", each) for n, each in enumerate(programs)]
    with pytest.raises(ValueError, match=r"^1 ended with exit code 3; the same"):
        train_runs(runs, 1, parallel=2)
    assert {*read_notes(runs[0])[0]} == {"begin", "prepared", "asked"}
    assert not Path(f"{runs[2].folder}.txt").exists()


def test_runs_in_parallel_do_not_share_several_gpus():
    with pytest.raises(ValueError, match="parallel is 2 and gpus is 4: all runs would share"):
        train_runs([], 4, parallel=2)


def test_a_run_that_fails_stops_the_report(arguments, tmp_path):
    own = [f"runs={tmp_path / 'p'}", "train=init_from=nowhere", "parallel=1"]
    code, _, error = run_here(paper.main, *arguments, *own, quiet=[])
    assert code == 2
    assert "discrete-seed3 ended with exit code 2" in error
    assert not (tmp_path / "p" / "report.md").exists()


@pytest.mark.parametrize(
    ("train", "sentence"),
    [
        ("optim.epochs=0", "optim.epochs must be a whole number >= 1, not 0"),
        ("data.root={root}", "no word vectors {root}/glove.840B.300d.txt: .*glove=<file>.*=none"),
        ("glove={root}/mine.txt", "there are no word vectors {root}/mine.txt: "),
    ],
)
def test_settings_and_word_vectors_of_all_runs_are_checked_before_the_first(
    train, sentence, tmp_path
):
    words = [f"train={train.format(root=tmp_path)}", f"runs={tmp_path / 'p'}", "dataset=vqa_v2"]
    code, _, error = run_here(paper.main, *words, quiet=[])
    assert code == 2
    assert re.fullmatch(f"error: .*{sentence.format(root=tmp_path)}.*\n", error)
    assert not (tmp_path / "p").exists()


def test_a_run_that_has_started_needs_no_word_vectors_nor_one_that_is_fine_tuned(tmp_path):
    runs = plan_runs("vqa_v2", [1], tmp_path, ["glove=nowhere.txt"], 2)
    assert [run.kind for run in runs if run_check_fails(run)] == [*HEADS]
    for run in runs:
        run.folder.mkdir()
    assert not any(map(run_check_fails, runs))


def run_check_fails(run):
    try:
        run.check()
    except FileNotFoundError:
        return True
    return False


def test_a_run_whose_folder_is_there_resumes_even_without_a_checkpoint(tmp_path):
    assert PlannedRun(tmp_path, ()).start_arguments(1)[-1] == "resume=true"
    assert PlannedRun(tmp_path / "new", ()).start_arguments(1)[-1] == "scripts.train"
