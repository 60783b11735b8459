"""Every config there is composes into what the commands need."""

from pathlib import Path

import hydra
import pytest
import torch

import attention
from mcan.head_schedule import ScheduledHead
from mcan.network.architecture import build_model
from mcan.training.learning_rate import build_rate
from tests.small_runs import compose

CONFIGS = Path(__file__).parents[2] / "configs"
GROUPS = ("attention", "data", "debug", "experiment", "model", "optim", "runtime")
CHOICES = [(group, file.stem) for group in GROUPS for file in (CONFIGS / group).glob("*.yaml")]
SIZES = {"num_words": 20, "num_answers": 5, "num_features": 4}


@pytest.mark.parametrize(("group", "choice"), CHOICES)
def test_every_choice_of_every_group_makes_a_model_and_a_learning_rate(group, choice):
    named = ["attention.name=discrete"] if choice == "own" else []
    config = compose([f"{group}={choice}", *named])
    head = ScheduledHead(config.attention, config.optim.epochs).build()
    assert isinstance(head, attention.Head)
    with torch.device("meta"):  # no memory for the weights of large models
        model = build_model(config.model, head, **SIZES)
    assert model.sizes.num_answers == 5
    assert build_rate(config.optim.rate).at(1, 0, 100) > 0


def test_every_group_was_looked_at():
    folders = {path.name for path in CONFIGS.iterdir() if path.is_dir()}
    # a head's options that may change are not a choice of a run, nor is where it takes place
    assert folders - {"hydra", "head", "launcher", "schema", "__pycache__"} == set(GROUPS)
    assert len(CHOICES) >= 17


@pytest.mark.parametrize("command", ["evaluate", "select_lambda"])
def test_what_can_be_changed_of_a_trained_head_is_an_option_of_the_head(command):
    with hydra.initialize_config_module("configs", version_base="1.3"):
        changed = hydra.compose(command).attention
    assert all(value is None for value in changed.values())
    assert set(changed) <= set(compose(["attention=multimodal"]).attention) - {"name"}
    assert ("lam" in changed) == (command == "evaluate")  # a table has every λ


@pytest.mark.parametrize("name", ["discrete", "unimodal", "multimodal"])
def test_an_experiment_of_the_paper_has_its_data_head_rate_and_opens_with_its_command(name):
    config = compose([f"experiment=paper_{name}"])
    assert (config.data.name, config.attention["name"]) == ("vqa_v2", name)
    assert (config.model.hidden, config.model.num_layers) == (512, 6)
    assert (config.optim.epochs, config.optim.batch_size) == (15, 64)
    assert (list(config.optim.betas), config.optim.epsilon) == ([0.9, 0.98], 1e-9)
    opening = (CONFIGS / "experiment" / f"paper_{name}.yaml").read_text()[:400]
    assert f'ARGS="experiment=paper_{name}"' in opening
    assert "Expected: 70." in opening


def test_the_experiment_of_the_release_has_the_settings_of_the_published_command():
    config = compose(["experiment=release_multimodal"])
    assert (config.data.name, config.train_split, config.model.hidden) == ("vqa_v2", "train", 512)
    assert (config.optim.epochs, config.optim.batch_size) == (15, 16)
    assert config.runtime.evaluation_batch_size == 8
    head = config.attention
    assert (head["selection"], head["penalty"], head["covariance"]) == (
        "batch", "components", "full",
    )  # fmt: skip
    assert (head["lam"], head["floor"], head["k_max"], head["num_restarts"]) == (5, 1e-6, 4, 3)
    assert (head["train_iterations"], head["test_iterations"]) == (6, 11)  # one more than asked
    assert config.word_vectors == compose(["experiment=paper_multimodal"]).word_vectors


def test_an_override_on_the_command_line_wins_over_the_experiment():
    config = compose(["experiment=paper_multimodal", "attention.lam=2", "optim=mcan"])
    assert config.attention["lam"] == 2
    assert config.optim.epochs == 13


def test_an_experiment_may_schedule_the_penalty_and_the_iterations():
    config = compose(
        ["attention.lam={linear:[0,4]}", "attention.train_iterations={steps:{1:2,4:5}}"]
    )
    scheduled = ScheduledHead(config.attention, num_epochs=5)
    assert [scheduled.values_at(epoch)["lam"] for epoch in (1, 3, 5)] == [0, 2, 4]
    assert [scheduled.values_at(epoch)["train_iterations"] for epoch in (1, 3, 4)] == [2, 2, 5]
