"""One part of every kind from a user's own module, examples/own_parts.py, in modules=[…]."""

import json
import shutil

import pytest
import torch

from data.features.reader import FeatureStore
from data.text.word_lists import prepare_words
from data.vqa.data_folder import DataFolder
from mcan.checkpoint import load_checkpoint
from mcan.evaluation.evaluation_split import open_evaluation_split
from mcan.evaluation.evaluator import evaluate_split
from mcan.evaluation.trained_model import load_trained
from mcan.runtime.settings import Runtime
from scripts import data, extract
from tests.small_models import run_here
from tests.small_runs import ALONE, finish, settings, start, train_here, without_times

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")

WITH_MODULE = "modules=[examples.own_parts]"


def run(main, *words):
    code, printed, error = run_here(main, *words, WITH_MODULE, quiet=[])
    assert code == 0, error
    return printed


@pytest.fixture
def shop(small_dataset, tmp_path):
    """The small dataset with the module's names of splits and files, features by its backbone."""
    old, splits = DataFolder(small_dataset), {"train": "train", "val": "minival"}
    for name, split in splits.items():
        words = [f"images={old.image_folder(name)}", f"output={tmp_path / split}.h5"]
        run(extract.main, *words, "backbone=tiny", "dtype=float32", "num_threads=1")
        with FeatureStore(tmp_path / f"{split}.h5") as store:
            assert store.num_features == 3
            assert (store.manifest.dtype, store.manifest.stride) == ("float32", 16)
    folder = DataFolder(tmp_path / "shop", "shop")
    for name, split in splits.items():
        for source, target in (
            (old.questions(name), folder.questions(split)),
            (old.annotations(name), folder.annotations(split)),
            (tmp_path / f"{split}.h5", folder.store(split)),
        ):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    printed = run(data.main, "data=custom", f"data.root={folder.root}", "data.layout=shop")
    assert "minival: " in printed
    assert f"data.root={folder.root} data.layout=shop modules=[…]'" in printed
    return folder


def test_parts_of_ones_own_train_resume_and_are_evaluated(shop, tmp_path):
    head = ["attention=own", "attention.name=sharp", "attention.temperature={halving:0.5}"]
    names = ["name=mine", WITH_MODULE, "tracker=[diary]", "data.layout=shop", "val_split=minival"]
    words = settings(shop.root, tmp_path, *head, *names)
    rate = "optim.rate={name:falling,start:0.002}"  # replaces all of the rate's keys
    code, printed = finish(start([*words, rate, "optim.epochs=1"]))
    assert code == 0, printed
    assert "make export" not in printed  # the layout has no test split
    train_here([*words, rate, "resume=true"])
    lines = load_checkpoint(tmp_path / "mine" / "last.pt")["lines"]
    assert [line["epoch"] for line in lines] == [1, 2]
    assert [line["temperature"] for line in lines] == [0.5, 0.25]
    assert [line["learning_rate"] for line in lines] == [0.002 / line["step"] for line in lines]

    half = lines[0]["step"]
    shown = [
        json.loads(line) for line in (tmp_path / "mine" / "diary.txt").read_text().splitlines()
    ]
    assert [line for line in shown if line[0] != "step"] == [
        ["run", 0, 1, "mine"], ["epoch", 1, 0], ["end", 1, lines[0]["accuracy"]],
        ["run", half, 2, "mine"], ["epoch", 2, 0], ["end", 2, lines[1]["accuracy"]],
    ]  # fmt: skip
    steps = [line[1:] for line in shown if line[0] == "step"]
    assert steps == [[step, 0.002 / (1 + step)] for step in range(2 * half)]
    assert not (tmp_path / "mine" / "tensorboard").exists()

    trained = load_trained(tmp_path / "mine" / "last.pt")
    assert trained.model.pool_image.head.temperature == 0.25
    folder = trained.open_data()
    assert folder.layout == shop.layout
    runtime = Runtime(num_threads=1)
    split = open_evaluation_split(folder, "minival", prepare_words(folder), runtime, ALONE.device)
    evaluation = evaluate_split(trained.model, split, ALONE, torch.float32)
    assert 1 <= evaluation.metrics["num_different_answers"] == lines[-1]["num_different_answers"]
    metrics, last = without_times(evaluation.metrics), without_times(lines[-1])
    assert metrics == {name: last[name] for name in metrics}
