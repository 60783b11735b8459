"""A model whose K* depends on its batch (selection=batch) answers in batches of its run's size."""

import json

import pytest

from mcan.evaluation import evaluation_split
from mcan.evaluation.single_question import describe_selection
from mcan.evaluation.trained_model import load_trained
from scripts import evaluate, export, train
from tests.small_models import (
    copy_checkpoint,
    find_command,
    read_error,
    run_here,
    sharpen,
    train_small,
)
from tests.small_runs import settings, train_here

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")
BY_BATCH = ["attention.selection=batch", "runtime.evaluation_batch_size=4", "attention.lam=3"]


@pytest.fixture(scope="module")
def run(small_dataset, tmp_path_factory):
    """A run of one epoch."""
    return train_small(small_dataset, tmp_path_factory.mktemp("runs"), "by-batch", *BY_BATCH)


@pytest.fixture(scope="module")
def peaky(run):
    """Its model with attention of every number of components."""
    return sharpen(run, "by-batch-peaky")


@pytest.fixture
def sizes(monkeypatch):
    """The batch sizes of all splits that are answered from now on."""
    asked, made = [], evaluation_split.evaluation_batches

    def record(image_ids, shapes, batch_size, *more):
        asked.append(batch_size)
        return made(image_ids, shapes, batch_size, *more)

    monkeypatch.setattr(evaluation_split, "evaluation_batches", record)
    return asked


def count_components(run, folder, *words):
    code, _, error = run_here(evaluate.main, f"checkpoint={run}", f"output={folder}", *words)
    assert code == 0, error
    report = json.loads((folder / "val.json").read_text())
    return report["evaluation_batch_size"], report["component_counts"]


def test_shares_of_k_are_those_of_the_runs_own_batches_unless_told_otherwise(peaky, tmp_path):
    own = count_components(peaky, tmp_path / "own")
    told = count_components(peaky, tmp_path / "told", "runtime.evaluation_batch_size=4")
    larger = count_components(peaky, tmp_path / "larger", "runtime.evaluation_batch_size=128")
    assert own == told
    assert own[0] == 4
    assert larger[0] == 128
    assert larger[1] != own[1]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("evaluate", "checkpoint={run}"),
        ("export", "checkpoint={run}"),
        ("select_lambda", "checkpoint={run} grid.count=2 folds=3"),
        ("human_attention", "checkpoints=[{run}] resamples=10"),
        ("figures", "checkpoints=[{run}] num=1 components=false formats=[png] dpi=20"),
        ("gallery", "checkpoints=[{run}] num=1"),
    ],
)
def test_every_command_takes_the_size_from_the_checkpoint(peaky, sizes, tmp_path, name, words):
    command = find_command(name)
    for number, more in enumerate(([], ["runtime.evaluation_batch_size=9"])):
        output = f"output={tmp_path / name}{number}{'.html' if name == 'gallery' else ''}"
        code, _, error = run_here(command, *words.format(run=peaky).split(), output, *more)
        assert code == 0, error
    assert (sizes[0], sizes[-1], len(set(sizes))) == (4, 9, 2)


def test_validation_and_the_figures_of_a_run_use_its_size(small_dataset, tmp_path, sizes):
    train_here(settings(small_dataset, tmp_path, *BY_BATCH, "optim.epochs=1", "figures=1"))
    assert sizes == [4, 4]


def test_other_models_answer_in_batches_of_the_default_size(multimodal_run, tmp_path, sizes):
    words = [f"checkpoint={multimodal_run}", f"output={tmp_path}"]
    assert run_here(evaluate.main, *words)[0] == 0
    assert run_here(evaluate.main, *words, "attention.selection=batch")[0] == 0
    assert sizes == [128, 128]


def test_an_ensemble_of_several_sizes_has_to_be_told_one(peaky, tmp_path, sizes):
    config = load_trained(peaky).config
    config = {**config, "runtime": {**config["runtime"], "evaluation_batch_size": 6}}
    other = copy_checkpoint(peaky / "best.pt", tmp_path / "other" / "best.pt", config=config)
    words = [f"checkpoints=[{peaky},{other}]", f"output={tmp_path}/out"]
    error = read_error(export.main, *words)
    assert "differ (4 of " in error
    assert "runtime.evaluation_batch_size=…" in error
    assert run_here(export.main, *words, "runtime.evaluation_batch_size=5")[0] == 0
    assert sizes == [5]


def test_a_run_is_resumed_with_the_size_it_was_started_with(run, small_dataset):
    words = settings(small_dataset, run.parent, *BY_BATCH, f"name={run.name}", "resume=true")
    error = read_error(train.main, *words, "runtime.evaluation_batch_size=8", quiet=[])
    assert "was started with runtime.evaluation_batch_size=4, not 8" in error


def test_one_question_alone_says_that_it_is(peaky, multimodal_run):
    (notice,) = describe_selection(load_trained(peaky))
    assert notice == "K is selected from this question alone, not in batches of 4"
    assert describe_selection(load_trained(multimodal_run)) == ()
