"""attention.density through the commands: trained, kept, resumed, and changed at test time."""

import json

import pytest

from mcan.checkpoint import load_checkpoint
from mcan.evaluation.trained_model import load_trained
from mcan.training.same_settings import check_same_settings
from scripts import evaluate, train
from scripts.cli.checkpoints import changed_options
from scripts.sweep.__main__ import main as sweep
from tests.scripts.test_normaliser import NEEDED
from tests.small_models import compose, find_command, read_error, run_here, train_small

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")


@pytest.mark.parametrize("command", NEEDED)
def test_every_command_of_a_trained_model_may_change_it(command):
    assert "density" not in changed_options(compose(command, NEEDED[command]))
    words = [*NEEDED[command], "attention.density=paraboloid"]
    assert changed_options(compose(command, words))["density"] == "paraboloid"


@pytest.mark.parametrize("head", ["unimodal", "multimodal"])
def test_a_run_keeps_its_density_and_resumes_with_no_other(head, small_dataset, tmp_path):
    words = [f"attention={head}", "attention.density=paraboloid"]
    run = train_small(small_dataset, tmp_path, "sparse", *words)
    trained = load_trained(run)
    assert trained.options["density"] == trained.model.pool_image.head.density == "paraboloid"
    now = load_checkpoint(run / "best.pt")["config"]
    older = {name: value for name, value in now["attention"].items() if name != "density"}
    before = {**now, "attention": older}
    check_same_settings({**now, "attention": {**older, "density": "gaussian"}}, before)
    with pytest.raises(ValueError, match=r"attention\.density=gaussian, not paraboloid"):
        check_same_settings(now, before)


def test_an_evaluation_with_paraboloids_has_the_components_of_the_gaussians(peaky_run, tmp_path):
    reports = {}
    for density in ("gaussian", "paraboloid"):
        words = [f"checkpoint={peaky_run}", f"output={tmp_path / density}", "attention.lam=0.3"]
        code, _, error = run_here(evaluate.main, *words, f"attention.density={density}")
        assert (code, error) == (0, "")
        reports[density] = json.loads((tmp_path / density / "val.json").read_text())
        assert reports[density]["attention"]["density"] == density
    counts = [report["component_counts"] for report in reports.values()]
    assert counts[0] == counts[1]
    assert sum(counts[0][1:]) > 0  # some have more than one component


@pytest.mark.parametrize("main", [train.main, sweep, find_command("cost")])
def test_a_wrong_name_is_one_sentence(main):
    error = read_error(main, "attention.density=cone")
    assert "density must be one of gaussian, paraboloid, not 'cone'" in error
