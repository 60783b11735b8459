"""make release: a released file answers as its run does, in every command, and resumes nothing."""

import json
import re
import shutil

import pytest
import torch

from mcan.checkpoint import load_checkpoint
from mcan.evaluation.trained_model import load_trained
from scripts import (
    ask,
    evaluate,
    export,
    figures,
    gallery,
    human_attention,
    release,
    select_lambda,
    train,
)
from scripts.demo.model_list import ModelList, find_checkpoints
from tests.small_models import draw_picture, listing, read_error, run_here
from tests.small_runs import assert_same, settings, train_here

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")


@pytest.fixture(scope="module")
def released(peaky_run, tmp_path_factory):
    """The released model of a run, in a folder of its own."""
    output = tmp_path_factory.mktemp("released") / "model.pt"
    code, printed, error = run_here(
        release.main, f"checkpoint={peaky_run}", f"output={output}", quiet=[]
    )
    assert (code, error) == (0, "")
    assert f"{output.with_suffix('.md')} is its model card" in printed
    return output


def run(main, *words):
    code, _, error = run_here(main, *words)
    assert code == 0, error


def test_it_is_smaller_and_its_model_is_the_same(peaky_run, released):
    whole, small = peaky_run / "best.pt", released
    assert small.stat().st_size < 0.6 * whole.stat().st_size
    one, other = load_checkpoint(whole), load_checkpoint(small)
    assert_same(dict(one["model"]), dict(other["model"]))
    assert not {"optimizer", "scaler"} & other.keys()
    assert load_trained(small).options == load_trained(whole).options
    assert re.search(r"commit [0-9a-f]{7}|not a git clone", small.with_suffix(".md").read_text())


def test_evaluate_measures_the_same_and_its_report_goes_into_the_next_card(
    peaky_run, released, tmp_path
):
    reports = []
    for number, checkpoint in enumerate((peaky_run, released)):
        run(evaluate.main, f"checkpoint={checkpoint}", f"output={tmp_path / str(number)}")
        reports.append(json.loads((tmp_path / str(number) / "val.json").read_text()))
    for name in ("accuracy", "component_counts", "num_questions", "epoch"):
        assert reports[0][name] == reports[1][name]
    again = tmp_path / "again"
    shutil.copytree(released.parent, again)
    run(evaluate.main, f"checkpoint={again / 'model.pt'}")
    words = [f"checkpoint={again / 'model.pt'}", f"output={again / 'second.pt'}"]
    code, printed, _ = run_here(release.main, *words, quiet=[])
    assert (code, "2 measured accuracies" in printed) == (0, True)
    row = f"| val | 60 | {reports[0]['accuracy']:.2f} |"
    assert row in (again / "second.md").read_text()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (select_lambda, "checkpoint={file} grid.count=0 grid.extra=[1,5] output={out}"),
        (export, "checkpoint={file} output={out}"),
        (human_attention, "checkpoints=[{file}] resamples=10 output={out}"),
        (figures, "checkpoints=[{file}] num=1 formats=[png] dpi=40 output={out}"),
        (gallery, "checkpoints=[{file}] num=2 output={out}"),
        (ask, "checkpoint={file} image={photo} question=red? output={out}/a.png"),
    ],
)
def test_every_command_takes_it_as_a_checkpoint(command, words, released, tmp_path):
    draw_picture().save(tmp_path / "photo.png")
    places = {"file": released, "out": tmp_path / "out", "photo": tmp_path / "photo.png"}
    run(command.main, *words.format(**places).split())
    assert list(tmp_path.glob("out*"))


def test_the_demo_and_a_new_run_take_it(released, small_dataset, tmp_path):
    models = ModelList(find_checkpoints([str(released)], tmp_path), torch.device("cpu"), changed={})
    assert models.names == ["model"]
    assert models.get("model").trained.path == released
    still = settings(small_dataset, tmp_path, "name=tuned", "optim.epochs=1", "optim.rate.peak=0")
    train_here([*still, f"init_from={released}", "runtime.limit_batches=1"])
    tuned = load_checkpoint(tmp_path / "tuned" / "last.pt")
    assert_same(dict(tuned["model"]), dict(load_checkpoint(released)["model"]))


@pytest.mark.parametrize("name", ["step_00000020.pt", "last.pt", "best.pt"])
def test_a_released_model_is_not_resumed(released, small_dataset, tmp_path, name):
    (tmp_path / "run").mkdir()
    path = shutil.copy(released, tmp_path / "run" / name)
    words = settings(small_dataset, tmp_path, "name=run", "resume=true")
    error = read_error(train.main, *words, quiet=[])
    assert f"{path} is a model without the state of a run" in error
    assert f"init_from={path}" in error
    assert (tmp_path / "run" / name).read_bytes() == released.read_bytes()


@pytest.mark.parametrize(
    ("checkpoint", "output", "message"),
    [
        ("{run}", "{out}/taken.pt", "taken.pt exists already; delete it or name another output="),
        ("{run}", "{out}/carded.pt", "carded.md exists already"),
        ("{run}", "{out}", "expected a file named *.pt"),
        ("{run}", "{out}/taken.pt/x.pt", "taken.pt is a file, not a folder"),
        ("{out}/noise.pt", "{out}/new.pt", "noise.pt is not a valid checkpoint"),
        ("{out}/other.pt", "{out}/new.pt", "is not a checkpoint of this project"),
        ("{out}/none.pt", "{out}/new.pt", "there is no checkpoint or run"),
    ],
)
def test_a_mistake_is_one_sentence_and_nothing_is_written(
    peaky_run, tmp_path, checkpoint, output, message
):
    for name in ("taken.pt", "carded.md", "noise.pt"):
        (tmp_path / name).write_text("precious")
    torch.save({"state_dict": {}}, tmp_path / "other.pt")
    before = listing(tmp_path)
    places = {"run": peaky_run, "out": tmp_path}
    words = [f"checkpoint={checkpoint.format(**places)}", f"output={output.format(**places)}"]
    assert message in read_error(release.main, *words, quiet=[])
    assert listing(tmp_path) == before
