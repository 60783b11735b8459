"""What a training run says of its data before it begins, and of what to run when it has ended."""

import shutil
import sys

import pytest

from data.features.reader import FeatureStore
from data.features.writer import StoreWriter
from data.io.atomic_files import write_json
from data.text.word_lists import prepare_words
from data.vqa.data_folder import DataFolder
from mcan.training.preparation import prepare_data
from mcan.training.summary import suggest_commands
from scripts import train
from tests.data.vqa.official_files import make_question
from tests.small_runs import compose, settings


@pytest.fixture
def folder(small_dataset, tmp_path):
    """A copy of the small dataset that a test may change."""
    return DataFolder(shutil.copytree(small_dataset, tmp_path / "data"))


def rename_backbone(folder, split, backbone):
    """Write a store again as if another backbone had made its features."""
    path = folder.store(split)
    old = path.rename(path.with_suffix(".old"))
    with FeatureStore(old) as store:
        sizes = {int(each): store.size(int(each)) for each in store.image_ids}
        with StoreWriter(
            path, sizes, store.num_features, source="test", backbone=backbone, resize=None
        ) as copy:
            for image_id in sizes:
                copy.write(image_id, store.rows(image_id).copy())


def test_validation_features_of_another_backbone_are_rejected_before_a_step(
    folder, tmp_path, monkeypatch, capsys
):
    rename_backbone(folder, "val", "R-50")
    words = settings(folder.root, tmp_path / "runs", "name=mixed", "optim.epochs=1")
    monkeypatch.setattr(sys, "argv", ["train", *words])
    with pytest.raises(SystemExit) as stop:
        train.main()
    error = capsys.readouterr().err
    assert stop.value.code == 2
    assert "val2014.h5 holds 69 features per cell of backbone R-50" in error
    assert "train2014.h5 69 features per cell of backbone patch" in error
    assert not (tmp_path / "runs" / "mixed").exists()


@pytest.mark.parametrize(("asked", "noticed"), [(4, True), (9, False), (3, False)])
def test_a_threshold_that_the_answers_were_not_built_with_is_noticed(
    folder, capsys, asked, noticed
):
    folder.answers.unlink()
    prepare_words(folder, 3)
    words = settings(folder.root, folder.root, f"data.min_answer_count={asked}")
    prepare_data(compose(words), folder)
    notice = f"{folder.answers} was built with data.min_answer_count=3, not 4; delete it"
    assert (notice in capsys.readouterr().out) == noticed


def test_what_to_run_next_can_be_run(tmp_path):
    folder, run = DataFolder(tmp_path), tmp_path / "a run"
    lines = suggest_commands(run, folder, selects_components=False)
    assert f"  make evaluate CHECKPOINT='{run}'" in lines
    assert "make lambda" not in lines
    assert "make export" not in lines  # there are no test questions
    write_json(folder.questions("test"), {"questions": [make_question(5)]})
    assert f"  make export CHECKPOINT='{run}'" in suggest_commands(run, folder, True)
