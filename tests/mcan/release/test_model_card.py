"""What a model card says of a checkpoint, and which numbers are really its own."""

import dataclasses
import json
from pathlib import Path

import pytest

from data.features.manifest import REGIONS
from mcan.checkpoint import load_checkpoint, save_checkpoint
from mcan.evaluation.trained_model import load_trained
from mcan.release.model_card import write_card
from mcan.release.released_model import Measurement, list_measurements, strip_run_state
from tests.small_models import copy_checkpoint

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")


@pytest.fixture
def run(multimodal_run, tmp_path):
    """A copy of a trained run, with a report of `make evaluate` that is made up."""
    path = copy_checkpoint(multimodal_run / "best.pt", tmp_path / "run" / "best.pt")
    report = {
        "checkpoint": "elsewhere/best.pt", "epoch": 1, "split": "val", "num_questions": 54321,
        "accuracy": 70.25, "accuracy_by_answer_type": {"number": 50.5, "other": 60.75},
        "attention": load_trained(path).options, "trained_on": [], "other_images": False,
        "data": f"elsewhere/{Path(load_trained(path).config['data']['root']).name}",
    }  # fmt: skip
    (path.parent / "evaluate").mkdir()
    write_report(path.parent, report)
    return path.parent, report


def write_report(folder, report, name="val"):
    (folder / "evaluate" / f"{name}.json").write_text(json.dumps(report))


def measure(folder):
    trained = load_trained(folder)
    return list_measurements(trained, load_checkpoint(trained.path))


def test_validation_and_reports_come_with_their_split_and_number_of_questions(run):
    folder, _ = run
    validated, evaluated = measure(folder)
    (line,) = load_checkpoint(folder / "best.pt")["lines"]
    assert (validated.split, validated.num_questions) == ("val", 60)
    assert validated.overall == line["accuracy"]
    assert evaluated == Measurement(
        "val", 54321, 70.25, {"number": 50.5, "other": 60.75}, "`make evaluate`"
    )


@pytest.mark.parametrize(
    "change",
    [
        {"epoch": 2},
        {"checkpoint": "elsewhere/last.pt"},
        {"other_images": True},
        {"accuracy": None},
    ],
)
def test_reports_of_another_checkpoint_and_controls_are_left_out(run, change):
    folder, report = run
    changed = {name: value for name, value in {**report, **change}.items() if value is not None}
    write_report(folder, changed)
    (folder / "evaluate" / "results.json").write_text('[{"question_id": 1, "answer": "yes"}]')
    assert len(measure(folder)) == 1


def test_a_last_checkpoint_within_an_epoch_has_no_report_of_what_it_was_before(run):
    folder, report = run
    last = {**report, "checkpoint": "elsewhere/last.pt"}
    write_report(folder, last)
    progress = load_checkpoint(folder / "best.pt")["progress"]
    sources = []
    for step in (0, 3):
        progress = {**progress, "step": step}
        copy_checkpoint(folder / "best.pt", folder / "last.pt", progress=progress)
        sources.append([each.source for each in measure(folder / "last.pt")])
    assert sources == [["validation after epoch 1", "`make evaluate`"], []]


def test_changed_options_other_data_and_questions_that_were_trained_on_are_said(run):
    folder, report = run
    options = {**report["attention"], "lam": 0.25}
    changes = {"attention": options, "data": "elsewhere/shop", "trained_on": ["val"]}
    write_report(folder, {**report, **changes})
    source = measure(folder)[-1].source
    expected = "attention.lam=0.25, on the data in shop, **trained on val**"
    assert source == f"`make evaluate`, {expected}"


def test_a_checkpoint_within_an_epoch_has_not_been_validated(run):
    folder, _ = run
    content = load_checkpoint(folder / "best.pt")
    progress = {**content["progress"], "step": 3}
    copy_checkpoint(folder / "best.pt", folder / "best.pt", progress=progress)
    assert [each.source for each in measure(folder)] == ["`make evaluate`"]
    released = strip_run_state(load_checkpoint(folder / "best.pt"))
    save_checkpoint(folder / "best.pt", released)  # released once more
    assert [each.source for each in measure(folder)] == ["`make evaluate`"]


def card_of(folder, **changes):
    trained = load_trained(folder)
    content = {**load_checkpoint(trained.path), **changes}
    names = "config", "manifest", "options"
    replaced = {name: changes[name] for name in names if name in changes}
    trained = dataclasses.replace(trained, **replaced)
    return write_card(trained, content, measure(folder), Path("out/model.pt"))


def test_a_card_names_data_numbers_commit_and_commands(run):
    folder, _ = run
    content = load_checkpoint(folder / "best.pt")
    num_parameters = sum(weight.numel() for weight in content["model"].values())
    card = card_of(folder, commit="abc1234")
    for text in (
        "# model\n", "custom, split train", "backbone patch", f"{num_parameters:,} parameters",
        "epoch 1 of 1, batches of 6, seed 1", "commit abc1234", "| val | 54,321 | 70.25 | 50.50 |",
        "| – | `make evaluate` |", "make evaluate CHECKPOINT=model.pt",
        'ARGS="init_from=model.pt', "load_trained('model.pt')",
    ):  # fmt: skip
        assert text in card, text
    assert "modules=" not in card
    assert "out/" not in card  # where it lies on this machine is nobody else's concern


def test_a_card_says_what_is_not_as_one_would_expect(run):
    folder, _ = run
    config = load_checkpoint(folder / "best.pt")["config"]
    config = {
        **config,
        "modules": ["mine"],
        "runtime": {"limit_batches": 7},
        "init_from": "runs/first",
    }
    card = card_of(folder, config=config)
    assert "**not on all of the data: 7 batches per epoch**" in card
    assert "initial weights of runs/first" in card
    assert "It was trained with modules=[mine], which the commands need too." in card


def test_a_card_names_the_normaliser_and_the_density_of_the_head(run):
    folder, report = run
    assert "MCAN with multimodal attention over the cells" in card_of(folder)
    options = {**report["attention"], "normaliser": "sparsemax", "density": "paraboloid"}
    card = card_of(folder, options=options)
    assert "MCAN with multimodal, sparsemax, paraboloid attention over the cells" in card


def test_a_card_of_a_model_on_regions_names_no_grid_and_no_command_for_new_images(run):
    folder, _ = run
    trained, content = load_trained(folder), load_checkpoint(folder / "best.pt")
    assert "make ask" in write_card(trained, content, [], Path("model.pt"))
    trained = dataclasses.replace(
        trained, manifest=dataclasses.replace(trained.manifest, cells=REGIONS)
    )
    card = write_card(trained, content, [], Path("model.pt"))
    assert "attention over the regions of an image" in card
    assert "features per region of backbone patch |" in card
    assert "make ask" not in card
    assert "make demo" not in card


def test_a_released_checkpoint_has_no_state_of_the_run(run):
    folder, _ = run
    content = load_checkpoint(folder / "best.pt")
    released = strip_run_state(content)
    gone = content.keys() - released.keys()
    # kind and format are those of every checkpoint
    expected = {"optimizer", "scaler", "num_threads", "questions_checksum"}
    assert gone == expected | {"kind", "format"}
    assert released["progress"] == {"epoch": 2, "step": 0}
