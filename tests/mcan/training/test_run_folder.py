"""A run's folder: never overwritten, one owner, and a whole checkpoint at any moment."""

import pytest
import torch

from data.text.word_lists import prepare_words
from data.vqa.data_folder import DataFolder
from mcan.checkpoint import load_checkpoint
from mcan.runtime.distributed import World
from mcan.training import run_folder
from mcan.training.metrics_file import read_metrics
from mcan.training.run import build_run
from mcan.training.run_folder import RunFolder
from tests.small_runs import compose, settings


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path / "runs" / "a", resume=False)


def names(folder):
    return sorted(path.name for path in folder.path.iterdir() if path.name != ".lock")


def test_an_existing_folder_is_rejected_and_not_touched(folder):
    folder.write_text("config.yaml", "seed: 1")
    folder.close()
    with pytest.raises(ValueError, match=r"runs/a exists already: continue it with resume=true"):
        RunFolder(folder.path, resume=False)
    assert (folder.path / "config.yaml").read_text() == "seed: 1"


def test_there_must_be_something_to_resume(tmp_path):
    with pytest.raises(ValueError, match=r"there is no run to resume in .*nothing"):
        RunFolder(tmp_path / "nothing", resume=True)
    assert not (tmp_path / "nothing").exists()


def test_a_folder_has_one_owner_until_it_is_closed(folder):
    with pytest.raises(ValueError, match="another process is training in"):
        RunFolder(folder.path, resume=True)
    folder.close()
    RunFolder(folder.path, resume=True).close()


def test_the_newest_are_kept_and_last_is_the_newest(folder):
    for step in (5, 10, 15, 20):
        folder.save(step, {"step": step}, keep=2, is_best=step == 10)
    assert names(folder) == ["best.pt", "last.pt", "step_00000015.pt", "step_00000020.pt"]
    assert load_checkpoint(folder.path / "last.pt")["step"] == 20
    assert load_checkpoint(folder.path / "best.pt")["step"] == 10
    assert folder.latest()["step"] == 20


def test_a_folder_without_checkpoints_has_no_latest(folder):
    assert folder.latest() is None


def test_a_damaged_newest_checkpoint_falls_back_to_the_one_before(folder, capsys):
    for step in (5, 10):
        folder.save(step, {"step": step}, keep=2)
    folder.close()
    folder = RunFolder(folder.path, resume=True)
    newest = folder.path / "step_00000010.pt"
    content = newest.read_bytes()
    newest.write_bytes(content[: len(content) // 2])
    assert folder.latest()["step"] == 5
    warning = capsys.readouterr().out
    assert "WARNING" in warning
    assert "step_00000010.pt is not a valid checkpoint" in warning
    assert "resuming from step_00000005.pt" in warning
    folder.save(6, {"step": 6}, keep=1)  # the damaged one is not taken for the newest
    assert folder.latest()["step"] == 6


def test_when_all_are_damaged_the_newest_is_named(folder):
    for step in (5, 10):
        folder.save(step, {"step": step}, keep=2)
        (folder.path / f"step_{step:08d}.pt").write_bytes(b"")
    with pytest.raises(ValueError, match=r"step_00000010\.pt is not a valid checkpoint"):
        folder.latest()


def test_all_processes_are_told_that_no_checkpoint_is_valid(folder, small_dataset, tmp_path):
    """Else they would wait for one that the first process cannot give them."""
    told = []

    class FirstOfTwo(World):
        def broadcast(self, value):
            told.append(value)
            return value

    (folder.path / "step_00000010.pt").write_bytes(b"")
    data = DataFolder(small_dataset)
    world = FirstOfTwo(0, 2, torch.device("cpu"))
    composed = compose(settings(small_dataset, tmp_path))
    with pytest.raises(ValueError, match=r"step_00000010\.pt is not a valid checkpoint") as raised:
        build_run(composed, data, prepare_words(data), world, folder)
    assert told == [raised.value]


def test_a_run_that_never_began_leaves_no_folder_and_any_other_stays(folder):
    folder.write_text("config.yaml", "seed: 1")
    folder.discard()
    assert not folder.path.exists()
    again = RunFolder(folder.path, resume=False)
    again.save(5, {"step": 5}, keep=2)
    again.discard()
    assert again.latest()["step"] == 5


class KilledError(Exception):
    """Stands for kill -9."""


def test_a_kill_between_the_names_of_a_checkpoint_loses_none(folder, monkeypatch):
    """Whatever a run resumes from, last.pt and best.pt are as new as that."""
    folder.save(5, {"step": 5}, keep=2, is_best=True)
    for num_names in range(3):
        step = 10 + num_names
        made = 0

        def link_until_killed(source, target, link=run_folder.link_checkpoint, limit=num_names):
            nonlocal made
            if made == limit:
                raise KilledError
            made += 1
            link(source, target)

        with monkeypatch.context() as patch:
            patch.setattr(run_folder, "link_checkpoint", link_until_killed)
            try:
                folder.save(step, {"step": step}, keep=2, is_best=True)
            except KilledError:
                assert num_names < 2
        goes_on_from = folder.latest()["step"]
        for name in ("last.pt", "best.pt"):
            assert load_checkpoint(folder.path / name)["step"] >= goes_on_from


def test_what_a_killed_run_left_half_written_is_removed(folder):
    for name in (".last.pt.123.partial", ".metrics.jsonl.partial", ".best.pt.link"):
        (folder.path / name).write_bytes(b"half")
    folder.save(5, {"step": 5}, keep=2)
    folder.close()
    again = RunFolder(folder.path, resume=True)
    assert names(again) == ["last.pt", "step_00000005.pt"]


def test_metrics_are_replaced_as_a_whole(folder):
    path = folder.path / "metrics.jsonl"
    assert read_metrics(path) == []
    folder.keep_metrics([{"epoch": 1}, {"epoch": 2}])
    folder.keep_metrics([{"epoch": 1}])
    assert read_metrics(path) == [{"epoch": 1}]


@pytest.mark.parametrize("line", [b'{"epoch": 2', b"[2]", b"\xff"])
def test_a_damaged_line_of_metrics_is_named(tmp_path, line):
    (tmp_path / "metrics.jsonl").write_bytes(b'{"epoch": 1}\n' + line + b"\n")
    with pytest.raises(ValueError, match=r"metrics\.jsonl: line 2 is damaged"):
        read_metrics(tmp_path / "metrics.jsonl")
