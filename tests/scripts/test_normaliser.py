"""attention.normaliser through the commands: trained, kept, resumed, and changed at test time."""

import json

import pytest
import torch

from mcan.checkpoint import load_checkpoint
from mcan.evaluation.trained_model import load_trained
from mcan.training.same_settings import check_same_settings
from scripts import evaluate, train
from scripts.cli.checkpoints import changed_options
from scripts.sweep.__main__ import main as sweep
from tests.small_models import compose, find_command, read_error, run_here, train_small
from tests.small_runs import settings

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")
NEEDED = {
    "ask": ["checkpoint=a", "image=b", "question=c"],
    "demo": [],
    "evaluate": ["checkpoint=a"],
    "export": ["checkpoint=a"],
    "figures": ["checkpoints=[a]"],
    "gallery": ["checkpoints=[a]"],
    "human_attention": ["checkpoints=[a]"],
    "select_lambda": ["checkpoint=a"],
}


@pytest.fixture(scope="module")
def sparse_run(small_dataset, tmp_path_factory):
    """A run of one epoch of a discrete head on sparsemax weights."""
    runs = tmp_path_factory.mktemp("runs")
    words = ["attention=discrete", "attention.normaliser=sparsemax"]
    return train_small(small_dataset, runs, "sparse", *words)


@pytest.mark.parametrize("command", NEEDED)
def test_every_command_of_a_trained_model_may_change_it(command):
    assert "normaliser" not in changed_options(compose(command, NEEDED[command]))
    words = [*NEEDED[command], "attention.normaliser=entmax15"]
    assert changed_options(compose(command, words))["normaliser"] == "entmax15"


def test_a_run_keeps_its_normaliser_and_resumes_with_no_other(sparse_run, small_dataset):
    trained = load_trained(sparse_run)
    assert trained.options["normaliser"] == trained.model.pool_image.head.normaliser == "sparsemax"
    words = settings(
        small_dataset, sparse_run.parent, "name=sparse", "attention=discrete", "resume=true"
    )
    code, _, error = run_here(train.main, *words, "optim.epochs=1", quiet=[])
    assert code == 2
    assert "was started with attention.normaliser=sparsemax, not softmax" in error


def test_a_run_from_before_the_option_resumes_with_softmax_alone(sparse_run):
    now = load_checkpoint(sparse_run / "best.pt")["config"]
    before = {**now, "attention": {"name": "discrete"}}
    check_same_settings({**now, "attention": {"name": "discrete", "normaliser": "softmax"}}, before)
    with pytest.raises(ValueError, match=r"attention\.normaliser=softmax, not sparsemax"):
        check_same_settings(now, before)


def test_evaluation_with_another_normaliser_is_reported_with_other_weights(peaky_run, tmp_path):
    counts = {}
    for name in ("softmax", "sparsemax"):
        words = [f"checkpoint={peaky_run}", f"output={tmp_path / name}", "attention.lam=0.3"]
        code, _, error = run_here(evaluate.main, *words, f"attention.normaliser={name}")
        assert (code, error) == (0, "")
        report = json.loads((tmp_path / name / "val.json").read_text())
        assert report["attention"]["normaliser"] == name
        counts[name] = report["component_counts"]
    assert counts["softmax"] != counts["sparsemax"]


def test_a_checkpoint_loads_under_every_normaliser(peaky_run):
    models = {
        name: load_trained(peaky_run, changed={"normaliser": name}).model
        for name in ("softmax", "entmax15", "sparsemax")
    }
    softmax = models["softmax"].state_dict()
    for model in models.values():
        assert model.state_dict().keys() == softmax.keys()
        assert all(torch.equal(weight, softmax[n]) for n, weight in model.state_dict().items())


@pytest.mark.parametrize(
    ("main", "words"),
    [
        (train.main, ["attention.normaliser=sparse"]),
        (sweep, ["attention.normaliser=softmax,sparse"]),
        (find_command("cost"), ["attention.normaliser=sparse"]),
    ],
)
def test_a_wrong_name_is_one_sentence(main, words):
    sentence = "normaliser must be one of softmax, entmax15, sparsemax, not 'sparse'"
    assert sentence in read_error(main, *words)


def test_a_wrong_name_at_test_time_is_one_sentence_too(peaky_run, tmp_path):
    words = [f"checkpoint={peaky_run}", f"output={tmp_path / 'no'}", "attention.normaliser=max"]
    assert "normaliser must be one of" in read_error(evaluate.main, *words)
    assert not (tmp_path / "no").exists()
