"""make score: the official accuracy of a result file, and what it rejects."""

import json
import subprocess
import sys

import pytest

from data.vqa.accuracy import score_results
from data.vqa.data_folder import DataFolder
from data.vqa.questions import load_annotations
from scripts import score
from tests.data.vqa.official_files import real_folder, write_annotations, write_questions
from tests.small_models import read_error, run_here
from tests.small_runs import ROOT

GOLDEN = json.loads((ROOT / "tests/golden/vqa_accuracy.json").read_text())


@pytest.fixture
def arguments(tmp_path):
    """The golden files on disk, as arguments of the command."""
    write_questions(tmp_path / "q.json", GOLDEN["questions"])
    write_annotations(tmp_path / "a.json", GOLDEN["annotations"])
    (tmp_path / "r.json").write_text(json.dumps(GOLDEN["results"]))
    files = {"questions": "q", "annotations": "a", "results": "r", "output": "score"}
    return {key: tmp_path / f"{name}.json" for key, name in files.items()}


def list_words(arguments):
    return [f"{key}={value}" for key, value in arguments.items()]


def run(arguments):
    """What the command prints."""
    code, printed, error = run_here(score.main, *list_words(arguments), quiet=[])
    assert (code, error) == (0, "")
    return printed


def reject(arguments):
    """The sentence with which the command rejects its arguments; the files are as before."""
    folder = arguments["results"].parent
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    error = read_error(score.main, *list_words(arguments), quiet=[])
    assert before == {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    return error


def test_the_command_prints_a_table_and_writes_the_official_scores(arguments):
    ran = subprocess.run(
        [sys.executable, "-m", "scripts.score", *list_words(arguments)],
        capture_output=True,
        text=True,
        cwd=ROOT,
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


def test_nothing_is_written_when_no_output_is_named(monkeypatch, arguments, tmp_path):
    monkeypatch.chdir(tmp_path)
    del arguments["output"]
    before = sorted(tmp_path.rglob("*"))
    assert "68.83" in run(arguments)
    assert sorted(tmp_path.rglob("*")) == before


FIRST, *REST = GOLDEN["results"]
FOREIGN = {"question_id": 987654321, "answer": "yes"}


@pytest.mark.parametrize(
    ("results", "message"),
    [
        (REST, "1 of 600 questions are missing (1003)"),
        ([FIRST, *REST, FOREIGN], "1 ids are not in the question file (987654321)"),
        ([FIRST, *REST, FIRST], "1 question ids occur more than once (1003)"),
        ([FIRST | {"answer": 2}, *REST], "1 answers are not strings (questions 1003)"),
        ([FIRST | {"answer": None}, *REST], "1 answers are not strings (questions 1003)"),
        ([FIRST | {"question_id": True}, *REST], "must be a non-negative integer, not True"),
        ({"results": [FIRST, *REST]}, "expected one JSON array"),
    ],
    ids=["omitted", "foreign", "repeated", "number", "null", "true", "object"],
)
def test_invalid_results_are_rejected_and_the_old_score_is_left(arguments, results, message):
    arguments["results"].write_text(json.dumps(results))
    arguments["output"].write_text("old")
    error = reject(arguments)
    assert message in error
    assert "r.json" in error


def test_json_lines_are_rejected(arguments):
    arguments["results"].write_text("\n".join(map(json.dumps, GOLDEN["results"])))
    assert "JSON Lines" in reject(arguments)


def test_annotations_of_other_questions_are_rejected(arguments):
    write_annotations(arguments["annotations"], GOLDEN["annotations"][1:])
    assert "1 questions have no annotation (1003)" in reject(arguments)


@pytest.mark.parametrize("name", ["é.json", "a(1).json", "a=b.json", "a'b.json", "日 本#.json"])
def test_files_of_any_name_are_read_and_written(arguments, tmp_path, name):
    arguments["results"] = arguments["results"].rename(tmp_path / name)
    arguments["output"] = tmp_path / f"score {name}"
    assert "68.83" in run(arguments)
    assert json.loads(arguments["output"].read_text())["overall"] == 68.83


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("link/q.json", "the same file as questions"),
        ("link/a.json", "the same file as annotations"),
        ("link/r.json", "the same file as results"),
        ("folder", "folder is a folder; name the file"),
        ("q.json/s.json", "q.json is a file, not a"),
    ],
)
def test_an_output_that_is_read_or_cannot_be_a_file_is_rejected(
    arguments, tmp_path, output, message
):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    assert message in reject({**arguments, "output": tmp_path / output})


def test_an_output_that_cannot_be_a_file_is_rejected_before_anything_is_read(arguments, tmp_path):
    arguments["questions"].unlink()
    assert f"{tmp_path} is a folder" in reject({**arguments, "output": tmp_path})


@pytest.mark.real
def test_the_majority_answers_of_real_people_score_high(tmp_path):
    folder = DataFolder(real_folder())
    annotations = load_annotations([folder.annotations("val")])
    results = {each.question_id: each.multiple_choice_answer for each in annotations}
    path, output = tmp_path / "r.json", tmp_path / "score.json"
    path.write_text(
        json.dumps([{"question_id": key, "answer": value} for key, value in results.items()])
    )
    files = {"questions": folder.questions("val"), "annotations": folder.annotations("val")}
    run({**files, "results": path, "output": output})
    written = json.loads(output.read_text())
    assert written["overall"] == score_results(annotations, results).overall
    assert 80 < written["overall"] <= 100
