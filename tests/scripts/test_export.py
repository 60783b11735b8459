"""make export: the server's files, of one model and of an ensemble."""

import json
import re
import shlex
import shutil
from dataclasses import replace

import pytest

from data.io.atomic_files import check_output_file
from data.vqa.data_folder import DataFolder
from data.vqa.questions import load_questions
from data.vqa.results import load_results, result_name
from mcan.checkpoint import load_checkpoint, save_checkpoint
from mcan.evaluation.export import name_ensemble
from mcan.evaluation.trained_model import load_trained
from scripts import evaluate, export, score
from tests.small_models import run_here
from tests.small_runs import ALONE

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")

TEST = "vqa_OpenEnded_mscoco_test2015_{}_results.json"
TEST_DEV = "vqa_OpenEnded_mscoco_test-dev2015_{}_results.json"


@pytest.fixture(scope="module")
def exported(peaky_run, tmp_path_factory):
    """The files of one model, and what was printed."""
    run = tmp_path_factory.mktemp("runs") / "peaky"
    shutil.copytree(peaky_run, run)
    code, printed, error = run_here(export.main, f"checkpoint={run}")
    assert (code, error) == (0, "")
    return run / "export", printed


def test_there_are_files_of_the_official_names_beside_the_checkpoint(exported):
    names = sorted(path.name for path in exported[0].iterdir())
    assert names == sorted([TEST.format("peaky"), TEST_DEV.format("peaky")])


def test_each_file_answers_every_question_of_its_question_file_once(exported, small_dataset):
    folder = DataFolder(small_dataset)
    listed = set(json.loads(folder.answers.read_text())["words"])
    for split, name in (("test", TEST), ("test-dev", TEST_DEV)):
        entries = json.loads((exported[0] / name.format("peaky")).read_text())
        asked = load_questions([folder.questions(split)]).ids.tolist()
        assert sorted(entry["question_id"] for entry in entries) == sorted(asked)
        assert all(entry.keys() == {"question_id", "answer"} for entry in entries)
        assert all(type(entry["question_id"]) is int for entry in entries)
        assert {entry["answer"] for entry in entries} <= listed


def test_the_two_files_agree(exported):
    whole = load_results(exported[0] / TEST.format("peaky"))
    part = load_results(exported[0] / TEST_DEV.format("peaky"))
    assert 0 < len(part) < len(whole)
    assert part.items() <= whole.items()


def test_the_report_says_what_to_upload_where(exported):
    printed = exported[1]
    assert f"upload {TEST.format('peaky')}" in printed
    assert "test-dev and test-standard" in printed
    assert "not the 447,793 questions of VQA-v2" in printed
    assert f"{TEST_DEV.format('peaky')} is for older servers" in printed


def test_without_a_question_file_of_test_dev_there_is_one_file(peaky_run, data, tmp_path):
    data.questions("test-dev").unlink()
    words = f"data.root={data.root}", f"output={tmp_path / 'out'}", "name=my model"
    assert run_here(export.main, f"checkpoint={peaky_run}", *words)[0] == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == [TEST.format("my model")]


def test_the_command_that_scores_an_export_is_printed_and_works(peaky_run, tmp_path):
    words = f"checkpoint={peaky_run}", f"output={tmp_path / 'with space'}"
    printed = run_here(export.main, *words, "split=val")[1]
    _, command = printed.split("score it offline: make score ")
    (assigned,) = shlex.split(command)  # a shell reads the line, and make gives it ARGS again
    settings = shlex.split(assigned.removeprefix("ARGS="))
    code, scored, error = run_here(score.main, *settings, quiet=[])
    assert (code, error) == (0, "")
    assert "overall" in scored


def test_no_command_is_printed_where_one_file_cannot_be_scored(peaky_run, exported, tmp_path):
    words = f"checkpoint={peaky_run}", f"output={tmp_path}", "split=train+val"
    code, printed, _ = run_here(export.main, *words)
    assert code == 0
    for each in (printed, exported[1]):  # questions of two files; no annotations
        assert "make score" not in each


def test_an_export_of_val_is_what_the_evaluation_writes(peaky_run, tmp_path):
    """And scores as it does: tests/scripts/test_evaluate.py."""
    words = f"checkpoint={peaky_run}", f"output={tmp_path}"
    assert run_here(export.main, *words, "split=val")[0] == 0
    results = tmp_path / "vqa_OpenEnded_mscoco_val2014_peaky_results.json"
    before = results.read_bytes()
    assert run_here(evaluate.main, *words)[0] == 0
    assert results.read_bytes() == before


def test_an_ensemble_answers_together_and_is_named_after_its_runs(
    exported, peaky_run, discrete_run, tmp_path
):
    """That probabilities are averaged, tests/mcan/evaluation/test_predict.py shows by hand."""
    words = f"checkpoints=[{peaky_run},{discrete_run}]", f"output={tmp_path}"
    code, _, error = run_here(export.main, *words)
    assert (code, error) == (0, "")
    together = load_results(tmp_path / TEST.format("peaky+discrete"))
    part = load_results(tmp_path / TEST_DEV.format("peaky+discrete"))
    assert part.items() <= together.items()
    alone = load_results(exported[0] / TEST.format("peaky"))
    assert together.keys() == alone.keys()
    assert together != alone


def test_an_ensemble_of_models_that_do_not_go_together_is_rejected(
    peaky_run, discrete_run, tmp_path
):
    """A model trained on 5 words of a question would otherwise be given 14, or another only 5."""
    content = load_checkpoint(discrete_run / "best.pt")
    save_checkpoint(tmp_path / "short.pt", {**content, "question_length": 5})
    for named, expected in (
        (f"{peaky_run},{tmp_path / 'short.pt'}", "reads 14 words of a question and .*short.pt 5;"),
        (f"{peaky_run},{peaky_run}/best.pt", "best.pt is named 2 times; name each checkpoint once"),
    ):
        words = f"checkpoints=[{named}]", f"output={tmp_path / 'out'}"
        code, printed, error = run_here(export.main, *words)
        assert (code, printed) == (2, "")
        assert re.search(expected, error)
    assert not (tmp_path / "out").exists()


def test_the_names_of_many_runs_make_a_file_name_that_can_be_written(peaky_run, tmp_path):
    trained = load_trained(peaky_run / "best.pt", ALONE.device)
    name = "vqa_v2-multimodal-seed{}-paper-batch_size_128-model_large"
    models = [replace(trained, name=name.format(number)) for number in range(5)]
    shortened = name_ensemble(models)
    assert shortened.startswith(f"{models[0].name}+{models[1].name}"[:100])
    check_output_file(tmp_path / result_name("test-dev", shortened))
    assert name_ensemble(models[:1]) == models[0].name


def test_an_option_changes_in_the_heads_of_an_ensemble_that_have_it(
    peaky_run, discrete_run, tmp_path
):
    words = f"checkpoints=[{peaky_run},{discrete_run}]", f"output={tmp_path}"
    assert run_here(export.main, *words, "attention.lam=0")[0] == 0
