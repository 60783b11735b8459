"""The split of docs/photographs.md is rebuilt from VQA-v2's own files."""

import json
import sys

import numpy as np
import pytest

from data.vqa.data_folder import DataFolder
from examples import photographs_split
from tests.small_runs import ROOT


def test_the_numbers_are_those_that_the_docs_name():
    ids = photographs_split.read_ids()
    images = {split: {number // 1000 for number in found} for split, found in ids.items()}
    text = " ".join((ROOT / "docs" / "photographs.md").read_text(encoding="utf-8").split())
    numbers = [len(ids["train2014"]), len(images["train2014"]), len(ids["val2014"])]
    assert "{:,} questions of VQA-v2's train2014 about {:,}".format(*numbers) in text
    assert f"and {numbers[2]:,} about {len(images['val2014']):,} others" in text
    assert images["train2014"].isdisjoint(images["val2014"])


@pytest.fixture
def vqa_v2(tmp_path):
    """VQA-v2's train2014 with one more question, and two of its photographs."""
    ids = sorted(set.union(*photographs_split.read_ids().values()))
    ids.append(ids[-1] + 1)
    root = tmp_path / "vqa_v2"
    images = root / "images" / "train2014"
    images.mkdir(parents=True)
    questions = [{"question_id": n, "image_id": n // 1000, "question": f"Is {n}?"} for n in ids]
    person = [{"answer": "yes", "answer_confidence": "yes", "answer_id": n} for n in range(1, 11)]
    more = {"question_type": "is", "answer_type": "yes/no", "multiple_choice_answer": "yes"}
    annotations = [
        {"question_id": n, "image_id": n // 1000, "answers": person, **more} for n in ids
    ]
    for name, content in (
        ("v2_OpenEnded_mscoco_train2014_questions.json", {"questions": questions}),
        ("v2_mscoco_train2014_annotations.json", {"annotations": annotations}),
    ):
        (root / name).write_text(json.dumps({"data_subtype": "train2014", **content}))
    for number in (ids[0] // 1000, ids[40] // 1000):
        (images / f"COCO_train2014_{number:012d}.jpg").write_bytes(b"a photograph")
    return root


def test_the_folder_has_the_questions_their_answers_and_links_to_the_photographs(
    vqa_v2, tmp_path, monkeypatch
):
    made = tmp_path / "photographs"
    monkeypatch.setattr(sys, "argv", ["photographs_split", str(vqa_v2), str(made)])
    photographs_split.main()
    folder = DataFolder(made)
    for split, ids in zip(("train", "val"), photographs_split.read_ids().values(), strict=True):
        questions = folder.read_questions(split)
        np.testing.assert_array_equal(np.sort(questions.ids), sorted(ids))
        assert len(folder.read_annotations(split)) == len(ids)
    assert {path.read_bytes() for path in made.glob("images/*/*.jpg")} == {b"a photograph"}


def test_after_an_interruption_the_same_command_makes_the_folder(vqa_v2, tmp_path, monkeypatch):
    made = tmp_path / "photographs"
    monkeypatch.setattr(sys, "argv", ["photographs_split", str(vqa_v2), str(made)])
    with monkeypatch.context() as interrupted:
        interrupted.setattr(photographs_split, "link_images", interrupt)
        with pytest.raises(KeyboardInterrupt):
            photographs_split.main()
    assert not made.exists()
    photographs_split.main()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["photographs", "vqa_v2"]


def interrupt(*arguments):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("target", "message"),
    [("vqa_v2", "vqa_v2 is there already"), ("new", "annotations.json; make data DATA=vqa_v2")],
)
def test_what_cannot_be_done_is_one_sentence_and_leaves_nothing(
    vqa_v2, tmp_path, monkeypatch, capsys, target, message
):
    (vqa_v2 / "v2_mscoco_train2014_annotations.json").unlink()
    monkeypatch.setattr(sys, "argv", ["photographs_split", str(vqa_v2), str(tmp_path / target)])
    with pytest.raises(SystemExit, match="2"):
        photographs_split.main()
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error
    assert [path.name for path in tmp_path.iterdir()] == ["vqa_v2"]
