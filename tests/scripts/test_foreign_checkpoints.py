"""Checkpoints and question files of another kind: one sentence, and nothing is written."""

import json
import os
import pickle
import shutil

import pytest
import torch

from data.text.answer_list import AnswerList
from data.text.vocabulary import Vocabulary
from data.vqa.data_folder import DataFolder
from data.vqa.questions import load_questions
from mcan.checkpoint import load_checkpoint, save_checkpoint
from scripts import evaluate, export, select_lambda
from tests.data.features.sample_features import write_sample
from tests.small_models import listing, run_here, run_there

COMMANDS = {"evaluate": evaluate.main, "export": export.main, "select_lambda": select_lambda.main}
SPLITS = {"evaluate": "val", "export": "test", "select_lambda": "val"}

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")


def rotate_answers(content):
    words = content["answers"]["words"]
    return {"answers": AnswerList([*words[1:], words[0]]).state()}


def drop_answer(content):
    return {"answers": AnswerList(content["answers"]["words"][1:]).state()}


def swap_words(content):
    words = content["vocabulary"]["words"]
    return {"vocabulary": Vocabulary([*words[:2], words[3], words[2], *words[4:]]).state()}


def change_answer(content):
    state = content["answers"]
    return {"answers": {**state, "words": ["changed", *state["words"][1:]]}}


class Evil:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def write_evil(folder):
    torch.save({"model": Evil(folder / "taken")}, folder / "best.pt")


def write_evil_pickle(folder):
    (folder / "best.pt").write_bytes(pickle.dumps(Evil(folder / "taken")))


EVERYWHERE = [
    (lambda content: {"vocabulary": None}, "carries no vocabulary and answers"),
    (rotate_answers, "made with another answer list"),
    (write_evil, "is not a valid checkpoint"),
]
ONCE = [
    (lambda content: {"answers": None}, "carries no vocabulary and answers"),
    (drop_answer, "its weights were trained with"),
    (swap_words, "made with another vocabulary"),
    (change_answer, "its fingerprint does not fit its words"),
    (write_evil_pickle, "is not a valid checkpoint"),
    (None, "holds no best.pt"),
]


@pytest.mark.parametrize(
    ("name", "spoil", "message"),
    [
        *((name, *case) for name in COMMANDS for case in EVERYWHERE),
        *(("evaluate", *case) for case in ONCE),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_rejected(multimodal_run, tmp_path, name, spoil, message):
    run = tmp_path / "run"
    run.mkdir()
    if spoil in (write_evil, write_evil_pickle):
        spoil(run)
    elif spoil is not None:
        content = load_checkpoint(multimodal_run / "best.pt")
        content.update(spoil(content))
        kept = {key: value for key, value in content.items() if value is not None}
        save_checkpoint(run / "best.pt", kept)
    before = listing(tmp_path)
    code, printed, error = run_here(COMMANDS[name], f"checkpoint={run}")
    assert (code, printed) == (2, "")
    assert message in error
    assert str(run) in error
    assert error.count("\n") == 1
    assert listing(tmp_path) == before
    assert not (run / "taken").exists()


def test_in_a_process_of_its_own_a_hostile_pickle_ends_with_exit_code_two(tmp_path):
    write_evil(tmp_path)
    ran = run_there("evaluate", f"checkpoint={tmp_path / 'best.pt'}")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: ")
    assert "is not a valid checkpoint" in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert [each.name for each in tmp_path.iterdir()] == ["best.pt"]


@pytest.fixture
def data(small_dataset, tmp_path):
    """A copy of the dataset without its pictures."""
    ignore = shutil.ignore_patterns("images", "human_attention")
    shutil.copytree(small_dataset, tmp_path / "data", ignore=ignore)
    return DataFolder(tmp_path / "data")


def read_error(name, run, data, tmp_path):
    """The error of a command that must write nothing."""
    output = tmp_path / "output"
    code, printed, error = run_here(
        COMMANDS[name], f"checkpoint={run}", f"data.root={data.root}", f"output={output}"
    )
    assert (code, printed) == (2, "")
    assert error.count("\n") == 1
    assert not output.exists()
    return error


@pytest.mark.parametrize("name", COMMANDS)
def test_a_question_file_of_another_split_is_rejected(multimodal_run, data, tmp_path, name):
    shutil.copy(data.questions("train"), data.questions(SPLITS[name]))
    error = read_error(name, multimodal_run, data, tmp_path)
    assert "holds the questions of train2014" in error
    assert data.questions(SPLITS[name]).name in error


@pytest.mark.parametrize("name", ["evaluate", "select_lambda"])
def test_questions_without_their_annotations_are_rejected(multimodal_run, data, tmp_path, name):
    content = json.loads(data.questions("train").read_text())
    content["data_subtype"] = ""  # it does not say whose it is
    data.questions("val").write_text(json.dumps(content))
    assert "must belong to the same split" in read_error(name, multimodal_run, data, tmp_path)


def test_a_test_dev_that_is_not_a_part_of_test_is_rejected(multimodal_run, data, tmp_path):
    content = json.loads(data.questions("test-dev").read_text())
    content["questions"][0]["question_id"] += 500
    data.questions("test-dev").write_text(json.dumps(content))
    assert "test-dev is a part of test" in read_error("export", multimodal_run, data, tmp_path)


def test_features_of_another_width_are_rejected(multimodal_run, data, tmp_path):
    images = set(load_questions([data.questions("val")]).image_ids.tolist())
    data.store("val").unlink()
    write_sample(data.store("val"), dict.fromkeys(images, (2, 3)), num_features=5)
    error = read_error("evaluate", multimodal_run, data, tmp_path)
    assert "holds 5 features per cell of backbone patch" in error
    assert "was trained on" in error
