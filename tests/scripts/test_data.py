"""The command that makes, downloads and checks datasets."""

import sys
from pathlib import Path

import pytest

from data.vqa.data_folder import DataFolder
from data.vqa.layout import LAYOUTS
from scripts import data
from tests.data.io.loopback import Site, serve
from tests.data.sample_folder import add_images, fill_folder
from tests.data.vqa.test_vqa_v2 import publish


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Run the command in this process; give its exit code."""
    monkeypatch.setattr(sys, "argv", ["data", *words])
    try:
        data.main()
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def test_vqa_v2_is_fetched_and_words_are_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "vqa"
    with serve(Site(publish(tmp_path), ranges=False, cut_after=200, cuts=2)) as site:
        words = ["data=vqa_v2", f"data.root={root}", f"data.url={site.url}", "data.pause=0"]
        assert run(monkeypatch, *words) == 0
        first = capsys.readouterr().out
        assert run(monkeypatch, *words) == 0
        second = capsys.readouterr().out
    assert "built" in first
    assert "172 + 84 + 169 GB" in first
    assert "kept" in second
    assert DataFolder(root).answers.is_file()


def test_a_missing_server_ends_in_one_sentence_and_code_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve(Site({})) as site:
        words = ["data=vqa_v2", f"data.root={tmp_path / 'v'}", f"data.url={site.url}"]
        assert run(monkeypatch, *words) == 2
    error = capsys.readouterr().err
    assert "v2_Questions_Train_mscoco.zip answered 404" in error
    assert "Traceback" not in error


def test_custom_folder_is_checked_and_the_next_step_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = fill_folder(tmp_path)
    add_images(folder, "train", range(1000, 1020))
    assert run(monkeypatch, "data=custom", f"data.root={tmp_path}") == 0
    shown = capsys.readouterr().out
    assert "built 9 question words and 2 answers" in shown
    assert "make extract" in shown
    assert folder.vocabulary.is_file()


def test_custom_without_a_folder_says_what_to_give(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "data=custom") == 2
    assert "data.root=…" in capsys.readouterr().err


def test_malformed_json_of_a_custom_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = fill_folder(tmp_path)
    folder.questions("train").write_text('{"questions": [')
    assert run(monkeypatch, "data=custom", f"data.root={tmp_path}") == 2
    assert f"{folder.questions('train')} is not valid JSON" in capsys.readouterr().err


def test_shapes_rejects_a_folder_of_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fill_folder(tmp_path)
    assert run(monkeypatch, f"data.root={tmp_path}", "data.force=true") == 2
    assert "holds other files" in capsys.readouterr().err


def test_a_list_kept_from_another_threshold_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fill_folder(tmp_path)
    words = ["data=custom", f"data.root={tmp_path}"]
    assert run(monkeypatch, *words) == 0
    assert run(monkeypatch, *words) == 0
    assert "notice" not in capsys.readouterr().out
    assert run(monkeypatch, *words, "data.answers_more_than=3") == 0
    shown = capsys.readouterr().out
    assert "answers.json was built with data.min_answer_count=9, not 4; delete it" in shown


LAYOUT = """
from data.vqa.layout import Layout, register_layout

register_layout("mine", Layout(questions="{split}/q.json", annotations="{split}/a.json"))
"""


def test_a_folder_with_file_names_of_ones_own_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(LAYOUTS, "values", dict(LAYOUTS.values))  # other tests do not see it
    (tmp_path / "layout_of_mine.py").write_text(LAYOUT)
    monkeypatch.syspath_prepend(tmp_path)
    words = ["data=custom", f"data.root={tmp_path / 'data'}", "data.layout=mine"]
    assert run(monkeypatch, *words, "modules=[layout_of_mine]") == 2  # there is no folder yet
    fill_folder(tmp_path / "data", layout="mine")
    assert run(monkeypatch, *words, "modules=[layout_of_mine]") == 0
    assert (tmp_path / "data" / "val" / "q.json").is_file()
    assert "val: 20 questions about 20 images, annotations" in capsys.readouterr().out
