"""Checkpoints and question files of another kind: one sentence, and nothing is written."""

import json
import os
import pickle
import shutil

import pytest
import torch

from data.answers import AnswerList
from data.questions import load_questions
from data.splits import Folder
from data.vocabulary import Vocabulary
from mcan.checkpoint import load_checkpoint, save_checkpoint
from scripts import evaluate, export, select_lambda
from tests.data.sample_features import write_sample
from tests.small_models import listing, run_here, run_there

COMMANDS = {"evaluate": evaluate.main, "export": export.main, "select_lambda": select_lambda.main}
SPLITS = {"evaluate": "val", "export": "test", "select_lambda": "val"}

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")


def spoil(run, folder, **changes):
    """A checkpoint with other contents; None takes one away."""
    content = {**load_checkpoint(run / "best.pt"), **changes}
    folder.mkdir()
    save_checkpoint(folder / "best.pt", {k: v for k, v in content.items() if v is not None})
    return folder / "best.pt"


def without_vocabulary(run, folder):
    return spoil(run, folder, vocabulary=None), "carries no vocabulary and answers"


def without_answers(run, folder):
    return spoil(run, folder, answers=None), "carries no vocabulary and answers"


def with_other_answers(run, folder):
    words = load_checkpoint(run / "best.pt")["answers"]["words"]
    other = AnswerList([*words[1:], words[0]]).state()
    return spoil(run, folder, answers=other), "made with another answer list"


def with_fewer_answers(run, folder):
    words = load_checkpoint(run / "best.pt")["answers"]["words"]
    return spoil(
        run, folder, answers=AnswerList(words[1:]).state()
    ), "its weights were trained with"


def with_other_words(run, folder):
    words = load_checkpoint(run / "best.pt")["vocabulary"]["words"]
    turned = Vocabulary([*words[:2], words[3], words[2], *words[4:]]).state()
    return spoil(run, folder, vocabulary=turned), "made with another vocabulary"


def with_changed_answers(run, folder):
    state = load_checkpoint(run / "best.pt")["answers"]
    state = {**state, "words": ["changed", *state["words"][1:]]}
    return spoil(run, folder, answers=state), "its fingerprint does not fit its words"


class Evil:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def that_runs_code(run, folder):
    folder.mkdir()
    torch.save({"model": Evil(folder / "taken")}, folder / "best.pt")
    return folder / "best.pt", "is not a sound checkpoint"


def that_is_a_bare_pickle(run, folder):
    folder.mkdir()
    (folder / "best.pt").write_bytes(pickle.dumps(Evil(folder / "taken")))
    return folder / "best.pt", "is not a sound checkpoint"


def that_is_missing(run, folder):
    folder.mkdir()
    return folder, "holds no best.pt"


EVERYWHERE = [without_vocabulary, with_other_answers, that_runs_code]
ONCE = [
    without_answers, with_fewer_answers, with_other_words, with_changed_answers,
    that_is_a_bare_pickle, that_is_missing,
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "make"),
    [*((name, make) for name in COMMANDS for make in EVERYWHERE), *(("evaluate", m) for m in ONCE)],
)
def test_a_checkpoint_that_does_not_fit_is_refused(multimodal_run, tmp_path, name, make):
    path, message = make(multimodal_run, tmp_path / "run")
    before = listing(tmp_path)
    code, printed, error = run_here(COMMANDS[name], f"checkpoint={path}")
    assert (code, printed) == (2, "")
    assert message in error
    assert "run" in error
    assert error.count("\n") == 1
    assert listing(tmp_path) == before
    assert not (tmp_path / "run" / "taken").exists()


def test_in_a_process_of_its_own_a_hostile_pickle_ends_with_exit_code_two(multimodal_run, tmp_path):
    path, message = that_runs_code(multimodal_run, tmp_path / "run")
    ran = run_there("evaluate", f"checkpoint={path}")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: ")
    assert message in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert [each.name for each in (tmp_path / "run").iterdir()] == ["best.pt"]


@pytest.fixture
def data(small_dataset, tmp_path):
    """A copy of the dataset without its pictures."""
    ignore = shutil.ignore_patterns("images", "human_attention")
    shutil.copytree(small_dataset, tmp_path / "data", ignore=ignore)
    return Folder(tmp_path / "data")


def refuse(name, run, data, tmp_path):
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
def test_a_question_file_of_another_split_is_refused(multimodal_run, data, tmp_path, name):
    shutil.copy(data.questions("train"), data.questions(SPLITS[name]))
    error = refuse(name, multimodal_run, data, tmp_path)
    assert "holds the questions of train2014" in error
    assert data.questions(SPLITS[name]).name in error


@pytest.mark.parametrize("name", ["evaluate", "select_lambda"])
def test_questions_without_their_annotations_are_refused(multimodal_run, data, tmp_path, name):
    content = json.loads(data.questions("train").read_text())
    content["data_subtype"] = ""  # it does not say whose it is
    data.questions("val").write_text(json.dumps(content))
    assert "must belong to the same split" in refuse(name, multimodal_run, data, tmp_path)


def test_a_test_dev_that_is_no_part_of_test_is_refused(multimodal_run, data, tmp_path):
    content = json.loads(data.questions("test-dev").read_text())
    content["questions"][0]["question_id"] += 500
    data.questions("test-dev").write_text(json.dumps(content))
    assert "test-dev is a part of test" in refuse("export", multimodal_run, data, tmp_path)


def test_features_of_another_width_are_refused(multimodal_run, data, tmp_path):
    images = set(load_questions([data.questions("val")]).image_ids.tolist())
    data.store("val").unlink()
    write_sample(data.store("val"), dict.fromkeys(images, (2, 3)), num_features=5)
    error = refuse("evaluate", multimodal_run, data, tmp_path)
    assert "holds 5 features a cell of backbone patch" in error
    assert "was trained on" in error
