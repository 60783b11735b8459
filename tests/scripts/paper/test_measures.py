"""Comparisons and figures of runs that were trained again are made again."""

import os
import time

import pytest

from data.io.atomic_files import write_json
from data.vqa.data_folder import DataFolder
from scripts.paper import measures
from scripts.paper.runs import Run


@pytest.fixture
def two_runs(tmp_path):
    """Two runs of which nothing but a checkpoint is there."""
    runs = [Run(tmp_path / name, (), name, 1) for name in "ab"]
    for run in runs:
        run.folder.mkdir()
        run.checkpoint().touch()
    return runs


def retrain(run):
    """Have the checkpoint be newer than all other files."""
    later = time.time() + 60
    os.utime(run.checkpoint(), (later, later))


def test_a_comparison_is_made_again_when_any_of_its_runs_has_been_trained_again(
    two_runs, small_dataset, tmp_path, monkeypatch
):
    called = []

    def compare(arguments, what):
        called.append(what)
        write_json(summary, {})

    monkeypatch.setattr(measures, "call", compare)
    measured = measures.Measures(tmp_path, DataFolder(small_dataset), "val", (), "best")
    summary = tmp_path / "human_attention" / "seed1" / "val.json"
    write_json(summary, {})
    measured.compare_with_people(two_runs, "seed1")
    assert called == []
    retrain(two_runs[0])
    measured.compare_with_people(two_runs, "seed1")
    assert called == ["human_attention of a, b, best epoch"]


def test_figures_are_drawn_until_all_are_there_and_again_after_training(
    two_runs, small_dataset, tmp_path, monkeypatch
):
    called = []

    def draw(arguments, what):
        called.append(what)
        (tmp_path / "figures").mkdir(exist_ok=True)
        (tmp_path / "figures" / f"{len(called)}.png").touch()
        if len(called) == 1:
            raise ValueError("killed")

    def list_drawn():
        return [path.name for path in measured.draw_figures(two_runs, 1, "figures")]

    monkeypatch.setattr(measures, "call", draw)
    measured = measures.Measures(tmp_path, DataFolder(small_dataset), "val", (), "best")
    with pytest.raises(ValueError, match="killed"):
        list_drawn()
    assert [list_drawn(), list_drawn()] == [["2.png"], ["2.png"]]
    retrain(two_runs[0])
    assert list_drawn() == ["3.png"]
