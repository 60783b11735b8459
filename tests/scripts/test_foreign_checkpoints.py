"""Checkpoints and data that do not fit each other: one sentence, and nothing is written."""

import json
import shutil

import pytest

from data.vqa.questions import load_questions
from tests.checkpoint_changes import CHANGES
from tests.data.features.sample_features import write_sample
from tests.small_models import find_command, listing, read_error

SPLITS = {"evaluate": "val", "export": "test", "select_lambda": "val"}
FOR_ALL = ("no vocabulary", "other answers", "truncated")  # the others for evaluate alone

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")


@pytest.mark.parametrize("file", ["best.pt", "last.pt"])
@pytest.mark.parametrize(
    ("command", "change"),
    [
        *(("evaluate", change) for change in CHANGES),
        *((command, change) for command in ("export", "select_lambda") for change in FOR_ALL),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_rejected(
    multimodal_run, tmp_path, command, change, file
):
    path = tmp_path / "run" / file
    path.parent.mkdir()
    shutil.copy(multimodal_run / file, path)
    message = CHANGES[change](path)
    before = listing(tmp_path)
    named = path.parent if file == "best.pt" else path  # a run folder means its best.pt
    error = read_error(find_command(command), f"checkpoint={named}")
    assert message in error
    assert str(path) in error
    assert listing(tmp_path) == before


def take_questions_of_train(data, split):
    shutil.copy(data.questions("train"), data.questions(split))
    return "holds the questions of train2014", data.questions(split).name


def take_unnamed_questions_of_train(data, split):
    content = json.loads(data.questions("train").read_text())
    content["data_subtype"] = ""  # it does not say whose it is
    data.questions(split).write_text(json.dumps(content))
    return ("must belong to the same split",)


def ask_something_else_in_test_dev(data, split):
    content = json.loads(data.questions("test-dev").read_text())
    content["questions"][0]["question_id"] += 500
    data.questions("test-dev").write_text(json.dumps(content))
    return ("test-dev is a part of test",)


def narrow_features(data, split):
    images = set(load_questions([data.questions(split)]).image_ids.tolist())
    data.store(split).unlink()
    write_sample(data.store(split), dict.fromkeys(images, (2, 3)), num_features=5)
    return "holds 5 features per cell of backbone patch", "was trained on"


@pytest.mark.parametrize(
    ("command", "spoil"),
    [
        *((command, take_questions_of_train) for command in SPLITS),
        *((command, take_unnamed_questions_of_train) for command in ("evaluate", "select_lambda")),
        ("export", ask_something_else_in_test_dev),
        ("evaluate", narrow_features),
    ],
)
def test_data_that_do_not_fit_are_rejected(multimodal_run, data, tmp_path, command, spoil):
    expected = spoil(data, SPLITS[command])
    words = f"checkpoint={multimodal_run}", f"data.root={data.root}", f"output={tmp_path / 'out'}"
    error = read_error(find_command(command), *words)
    assert all(part in error for part in expected), error
    assert not (tmp_path / "out").exists()
