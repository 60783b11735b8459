import json
import subprocess
import sys
from pathlib import Path

import pytest

from data.vqa.accuracy import score_results
from data.vqa.data_folder import DataFolder
from data.vqa.questions import load_annotations
from scripts import score
from tests.data.vqa.official_files import real_folder, write_annotations, write_questions

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/vqa_accuracy.json").read_text())


@pytest.fixture
def arguments(tmp_path):
    """The golden files on disk, as arguments of the command."""
    write_questions(tmp_path / "q.json", GOLDEN["questions"])
    write_annotations(tmp_path / "a.json", GOLDEN["annotations"])
    (tmp_path / "r.json").write_text(json.dumps(GOLDEN["results"]))
    return {
        "questions": tmp_path / "q.json",
        "annotations": tmp_path / "a.json",
        "results": tmp_path / "r.json",
        "output": tmp_path / "score.json",
    }


def run(monkeypatch, arguments):
    words = [f"{key}={value}" for key, value in arguments.items()]
    monkeypatch.setattr(sys, "argv", ["score", *words])
    score.main()


def test_the_command_prints_a_table_and_writes_the_official_scores(arguments, tmp_path):
    words = [f"{key}={value}" for key, value in arguments.items()]
    ran = subprocess.run(
        [sys.executable, "-m", "scripts.score", *words],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    expected = GOLDEN["expected"]["accuracy"]
    written = json.loads(arguments["output"].read_text())
    assert list(written) == ["overall", "perAnswerType", "perQuestionType", "perQuestion"]
    assert {key: written[key] for key in expected} == expected
    assert written["perQuestion"] == GOLDEN["expected"]["per_question"]
    table = {
        line.rsplit(maxsplit=2)[0].strip(): line.split()
        for line in ran.stdout.splitlines()[1:]
        if len(line.split()) > 2
    }
    assert table["overall"][-2:] == ["68.83", "600"]
    for group in (expected["perAnswerType"], expected["perQuestionType"]):
        for name, accuracy in group.items():
            assert table[name][-2] == f"{accuracy:.2f}"


def test_nothing_is_written_when_no_output_is_named(monkeypatch, arguments, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    del arguments["output"]
    before = sorted(tmp_path.rglob("*"))
    run(monkeypatch, arguments)
    assert "68.83" in capsys.readouterr().out
    assert sorted(tmp_path.rglob("*")) == before


def drop_first(results):
    return results[1:]


def add_foreign(results):
    return [*results, {"question_id": 987654321, "answer": "yes"}]


def repeat_first(results):
    return [*results, results[0]]


def number_first(results):
    return [results[0] | {"answer": 2}, *results[1:]]


def true_id(results):
    return [results[0] | {"question_id": True}, *results[1:]]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (drop_first, "1 of 600 questions are missing (1003)"),
        (add_foreign, "1 ids are not in the question file (987654321)"),
        (repeat_first, "1 question ids occur more than once (1003)"),
        (number_first, "1 answers are not strings (questions 1003)"),
        (true_id, "must be a non-negative integer, not True"),
        (lambda results: {"results": results}, "expected one JSON array"),
    ],
)
def test_bad_results_end_in_one_sentence_and_leave_the_old_score(
    monkeypatch, arguments, capsys, spoil, message
):
    arguments["results"].write_text(json.dumps(spoil(GOLDEN["results"])))
    arguments["output"].write_text("old")
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, arguments)
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert "r.json" in error
    assert error.count("\n") == 1
    assert arguments["output"].read_text() == "old"


def test_json_lines_are_rejected(monkeypatch, arguments, capsys):
    lines = "\n".join(json.dumps(result) for result in GOLDEN["results"])
    arguments["results"].write_text(lines)
    with pytest.raises(SystemExit):
        run(monkeypatch, arguments)
    assert "JSON Lines" in capsys.readouterr().err


def test_annotations_of_other_questions_are_rejected(monkeypatch, arguments, capsys):
    write_annotations(arguments["annotations"], GOLDEN["annotations"][1:])
    with pytest.raises(SystemExit):
        run(monkeypatch, arguments)
    assert "1 questions have no annotation (1003)" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["é.json", "a(1).json", "a=b.json", "a'b.json", "日 本#.json"])
def test_files_of_any_name_are_read_and_written(monkeypatch, arguments, capsys, tmp_path, name):
    arguments["results"] = arguments["results"].rename(tmp_path / name)
    arguments["output"] = tmp_path / f"score {name}"
    run(monkeypatch, arguments)
    assert "68.83" in capsys.readouterr().out
    assert json.loads(arguments["output"].read_text())["overall"] == 68.83


@pytest.mark.parametrize("name", ["questions", "annotations", "results"])
def test_a_file_that_is_read_is_not_written_over(monkeypatch, arguments, capsys, tmp_path, name):
    before = arguments[name].read_bytes()
    (tmp_path / "link").symlink_to(tmp_path)
    arguments["output"] = tmp_path / "link" / arguments[name].name
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, arguments)
    assert ended.value.code == 2
    assert f"the same file as {name}" in capsys.readouterr().err
    assert arguments[name].read_bytes() == before


@pytest.mark.parametrize(
    ("output", "message"),
    [("folder", "folder is a folder; name the file"), ("q.json/s.json", "q.json is a file, not a")],
)
def test_an_output_that_cannot_be_a_file_is_named(
    monkeypatch, arguments, capsys, tmp_path, output, message
):
    (tmp_path / "folder").mkdir()
    arguments["output"] = tmp_path / output
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.real
def test_the_majority_answers_of_real_people_score_high(monkeypatch, capsys, tmp_path):
    folder = DataFolder(real_folder())
    annotations = load_annotations([folder.annotations("val")])
    results = {each.question_id: each.multiple_choice_answer for each in annotations}
    path = tmp_path / "r.json"
    path.write_text(
        json.dumps([{"question_id": key, "answer": value} for key, value in results.items()])
    )
    run(
        monkeypatch,
        {
            "questions": folder.questions("val"),
            "annotations": folder.annotations("val"),
            "results": path,
            "output": tmp_path / "score.json",
        },
    )
    written = json.loads((tmp_path / "score.json").read_text())
    assert written["overall"] == score_results(annotations, results).overall
    assert 80 < written["overall"] <= 100
