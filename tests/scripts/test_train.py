"""Whole runs: killed and resumed to the same bits, stopped on request, rejected, fine-tuned."""

import io
import json
import re
import shutil
import signal

import numpy as np
import pytest
import torch
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from data.features.pca import fit_pca
from data.features.store_set import open_stores
from data.vqa.data_folder import DataFolder
from data.vqa.question_only import score_question_only
from mcan.checkpoint import load_checkpoint
from mcan.evaluation.trained_model import load_trained
from mcan.runtime import torch_settings
from mcan.training.trackers.attention_samples import NUM_SAMPLES, PIXELS
from mcan.training.trackers.tracker import TRACKERS
from scripts import train
from tests.faults.runs import hold_in_step
from tests.small_models import copy_checkpoint, listing, read_error, run_here
from tests.small_runs import (
    AT_EVERY_STEP,
    ROOT,
    assert_ends_like,
    assert_same,
    end_state,
    settings,
    train_here,
)

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")

BRIEF = ["optim.epochs=1", "runtime.limit_batches=2"]  # where what begins a run is looked at


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def words(small_dataset, runs):
    """Settings of all runs that must end alike; λ and an iteration count change with the epoch."""
    scheduled = ["attention.lam={linear:[0,2]}", "attention.train_iterations={steps:{1:2,2:4}}"]
    return settings(small_dataset, runs, *scheduled)


@pytest.fixture(scope="module")
def reference(words, runs):
    """A run that nothing interrupted; the others leave the word vectors to the default."""
    train_here([*words, "name=reference", "glove=none"])
    return runs / "reference"


def test_a_run_leaves_its_config_metrics_and_checkpoints(reference):
    names = {path.name for path in reference.iterdir()}
    assert names >= {"config.yaml", "metrics.jsonl", "tensorboard", "last.pt", "best.pt"}
    metrics = end_state(reference)["metrics"]
    assert [line["epoch"] for line in metrics] == [1, 2]
    assert [line["lam"] for line in metrics] == [0, 2]
    assert [line["train_iterations"] for line in metrics] == [2, 4]
    for line in metrics:
        assert line.keys() >= {"loss", "learning_rate", "accuracy", "accuracy_by_answer_type"}
        assert sum(line["component_counts"]) == 60
    assert load_checkpoint(reference / "last.pt")["lines"][0]["questions_per_second"] > 0
    assert metrics[1]["loss"] < metrics[0]["loss"]


def interrupt(words, name, runs, number):
    """Train up to a step, and send a signal there; the exit code."""
    process = hold_in_step([*words, f"name={name}", AT_EVERY_STEP], runs / f"{name}.trace", 6)
    process.send_signal(number)
    code, _ = process.end()
    newest = max((runs / name).glob("step_*.pt"))
    assert 5 <= load_checkpoint(newest)["progress"]["step"] <= 8
    return code


def test_a_run_asked_to_stop_in_an_epoch_resumes_to_the_same_bits(words, runs, reference):
    """By Slurm's signal; tests/faults/test_signals.py has the others, test_kill.py more kills."""
    assert interrupt(words, "stopped", runs, signal.SIGUSR1) == 75
    train_here([*words, "name=stopped", "resume=true"])
    assert_ends_like(runs / "stopped", reference)


def test_a_run_killed_before_its_first_checkpoint_starts_again(words, runs, reference):
    (runs / "early").mkdir()
    train_here([*words, "name=early", "resume=true"])
    assert_ends_like(runs / "early", reference)
    assert (runs / "early" / "config.yaml").is_file()


def test_a_finished_run_resumes_to_itself(words, runs, reference):
    shutil.copytree(reference, runs / "finished")
    train_here([*words, "name=finished", "resume=true"])
    assert_ends_like(runs / "finished", reference)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "reference exists already: continue it with resume=true"),
        (["resume=true", "model.hidden=8"], "the run to resume was started with model.hidden="),
        (["resume=true", "seed=2"], "the run to resume was started with seed="),
        (
            ["resume=true", "runtime.mixing=all"],
            "the run to resume was started with runtime.mixing=none, not all",
        ),
        (["resume=true", "optim=paper"], "the run to resume was started with optim."),
        (
            ["resume=true", "attention=discrete"],
            "the run to resume was started with attention.name=multimodal, not discrete",
        ),
        (  # best.pt would be the better of two that were measured on different questions
            ["resume=true", "val_split=train"],
            "the run to resume was started with val_split=val, not train",
        ),
        (
            ["resume=true", "attention.lam=5"],
            "the run to resume was started with attention.lam={'linear': [0, 2]}, not 5",
        ),
    ],
)
def test_an_existing_run_is_not_touched_without_resume_or_with_other_settings(
    words, reference, more, message
):
    before = listing(reference)
    kept = [w for w in words if not (w.startswith("attention") and "attention=discrete" in more)]
    error = read_error(train.main, *kept, "name=reference", *more, quiet=[])
    assert message in error
    assert listing(reference) == before


def change_entries(folder, kind, change):
    """Change the list of training questions, or of their annotations, in a copy of the dataset."""
    path = folder / f"v2_{kind}.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content[kind.rpartition("_")[2]])
    path.write_text(json.dumps(content), encoding="utf-8")


def give_the_first_anothers_answers(annotations):
    """Change only what the answers count, not which answers there are."""
    first = annotations[0]
    other = next(
        each
        for each in annotations
        if each["multiple_choice_answer"] != first["multiple_choice_answer"]
    )
    first["answers"] = other["answers"]


@pytest.mark.parametrize("changed", ["number", "words", "answers"])
def test_a_run_is_not_resumed_with_other_questions_or_answers(
    words, runs, reference, small_dataset, tmp_path, changed
):
    data = shutil.copytree(small_dataset, tmp_path / "data")
    questions, annotations = "OpenEnded_mscoco_train2014_questions", "mscoco_train2014_annotations"
    if changed == "number":
        change_entries(data, questions, lambda entries: entries.pop())
        change_entries(data, annotations, lambda entries: entries.pop())
    elif changed == "words":
        change_entries(data, questions, lambda entries: entries[-1].update(question="is there a?"))
    else:
        change_entries(data, annotations, give_the_first_anothers_answers)
    shutil.copytree(reference, runs / f"other_{changed}")
    more = [f"name=other_{changed}", "resume=true", f"data.root={data}"]
    assert "with other training questions or answers" in read_error(
        train.main, *words, *more, quiet=[]
    )


def test_a_run_is_not_resumed_with_features_of_another_backbone(words, runs, reference):
    shutil.copytree(reference, runs / "foreign")
    for path in (runs / "foreign").glob("step_*.pt"):
        manifest = load_checkpoint(path)["manifest"].replace('"patch"', '"R-50"')
        copy_checkpoint(path, path, manifest=manifest)
    error = read_error(train.main, *words, "name=foreign", "resume=true", quiet=[])
    assert "of backbone patch, but this run's checkpoint was trained on" in error
    assert error.endswith("of backbone R-50\n")


def test_a_resumed_run_may_have_more_epochs_and_tensorboard_keeps_the_first(words, runs, reference):
    shutil.copytree(reference, runs / "longer")
    train_here([*words, "name=longer", "resume=true", "optim.epochs=3"])
    state = end_state(runs / "longer")
    assert [line["epoch"] for line in state["metrics"]] == [1, 2, 3]
    assert_same(state["metrics"][:2], end_state(reference)["metrics"])
    board = EventAccumulator(str(runs / "longer" / "tensorboard"), purge_orphaned_data=True)
    shown = board.Reload().Scalars("epoch/accuracy")
    assert [event.value for event in shown] == pytest.approx(
        [line["accuracy"] for line in state["metrics"]]
    )


def test_a_tracker_that_fails_at_the_end_of_an_epoch_does_not_undo_it(
    words, runs, reference, monkeypatch
):
    class Failing:
        def __init__(self, run): ...
        def start_epoch(self, epoch, first_step): ...
        def on_step(self, result, rate): ...
        def end_epoch(self, metrics):
            raise RuntimeError("a tracker's own mistake")

    monkeypatch.setitem(TRACKERS.values, "failing", Failing)
    for more in ([], ["resume=true"]):  # an epoch each
        with pytest.raises(RuntimeError, match="own mistake"):
            train_here([*words, "name=failing", "tracker=[failing]", *more])
    assert_ends_like(runs / "failing", reference)


def test_tensorboard_shows_maps_of_the_same_questions_every_epoch_and_the_settings(reference):
    board = EventAccumulator(str(reference / "tensorboard"), size_guidance={"images": 0}).Reload()
    tags = board.Tags()["images"]
    assert len(tags) == NUM_SAMPLES
    for tag in tags:
        pictures = board.Images(tag)
        assert [each.step for each in pictures] == [
            line["step"] - 1 for line in end_state(reference)["metrics"]
        ]
        shown = np.asarray(Image.open(io.BytesIO(pictures[-1].encoded_image_string)))
        assert shown.max() == 255
        assert shown.shape[0] % PIXELS == shown.shape[1] % PIXELS == 0
    (chosen,) = board.Scalars("hparam/accuracy")
    assert chosen.value == pytest.approx(end_state(reference)["metrics"][-1]["accuracy"])
    settings_shown = board.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    assert b"attention.k_max" in settings_shown


def test_the_first_epoch_has_the_first_learning_rate_of_a_schedule_over_epochs(words, runs):
    rate = "optim.rate={name:mcan,peak:4e-3,warmup_epochs:1,decay:0.1,decay_epochs:[2]}"
    train_here([*words, "name=by_epoch", "optim.epochs=3", rate])
    lines = end_state(runs / "by_epoch")["metrics"]
    assert [line["learning_rate"] for line in lines] == pytest.approx([2e-3, 4e-3, 4e-4])


def test_a_run_ends_with_figures_a_table_and_what_to_do_next(words, runs, small_dataset, capsys):
    train_here([*words, "name=shown", "optim.epochs=1", "figures=2"])
    printed = capsys.readouterr().out
    folder = runs / "shown"
    assert len(list((folder / "figures").glob("*.png"))) == 2
    assert f"2 figures of its attention are in {folder / 'figures'}" in printed
    (line,) = end_state(folder)["metrics"]
    question_only = score_question_only(DataFolder(small_dataset), "train", "val")
    (overall,) = [row.split() for row in printed.splitlines() if row.startswith("  overall")]
    assert overall == ["overall", f"{line['accuracy']:.2f}", f"{question_only.overall:.2f}"]
    for target in re.findall(r"^  make ([a-z-]+) ", printed, re.MULTILINE):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_a_run_may_go_on_in_another_precision(words, runs, reference):
    shutil.copytree(reference, runs / "half")
    more = ["resume=true", "optim.epochs=3", "runtime.precision=float16"]
    train_here([*words, "name=half", *more])
    before, after = load_checkpoint(reference / "last.pt"), load_checkpoint(runs / "half/last.pt")
    assert (before["scaler"], after["scaler"] != {}) == ({}, True)
    assert not torch.equal(after["model"]["classify.bias"], before["model"]["classify.bias"])


def test_scheduled_values_are_in_force_in_their_epoch(words, runs, reference):
    """The reference has 2 EM iterations in its first epoch and 4 in its second."""
    kept = [word for word in words if "iterations" not in word]
    train_here([*kept, "attention.train_iterations=2", "name=constant"])
    constant, scheduled = end_state(runs / "constant"), end_state(reference)
    assert constant["lines"][0] == scheduled["lines"][0]
    assert constant["lines"][1]["loss"] != scheduled["lines"][1]["loss"]


def test_numbers_that_overflow_end_the_run_and_name_the_step(words, runs):
    words = [*words, "name=wild", "optim.rate.peak=1e30", AT_EVERY_STEP]
    code, _, error = run_here(train.main, *words, quiet=[])
    assert code == 2
    assert "is not finite (questions: " in error
    weights = load_checkpoint(runs / "wild" / "last.pt")["model"]
    assert all(weight.isfinite().all() for weight in weights.values())


@pytest.mark.parametrize("preset", [[], ["experiment=paper_discrete"]])
def test_missing_word_vectors_are_refused_before_data_is_read_with_both_ways_out(preset, tmp_path):
    root = tmp_path / "absent"
    words = [*preset, f"data.root={root}", f"runs={tmp_path / 'runs'}"]
    glove = [] if preset else [f"glove={root}/glove.840B.300d.txt"]
    code, _, error = run_here(train.main, *words, *glove, quiet=[])
    assert code == 2
    assert error.startswith(f"error: there are no word vectors {root}/glove.840B.300d.txt: ")
    assert "glove=<file>" in error
    assert "glove=none" in error
    assert 'ARGS="data.glove=true" downloads glove.840B.300d.txt\n' in error
    assert error.count("\n") == 1
    assert not any(tmp_path.iterdir())


def test_a_run_without_word_vectors_and_one_that_resumes_need_no_file(words, runs, reference):
    shutil.copytree(reference, runs / "random")
    train_here([*words, "name=random", "glove=nowhere.txt", "resume=true"])
    assert_ends_like(runs / "random", reference)


def test_word_vectors_of_another_width_name_the_setting_that_fits(words, runs, tmp_path):
    glove = tmp_path / "glove.txt"
    glove.write_text("circle 0.1 0.2 0.3\nred 0.3 0.2 0.1\n")
    code, _, error = run_here(train.main, *words, f"glove={glove}", "name=narrow", quiet=[])
    assert code == 2
    expected = f"error: {glove} has vectors of 3 numbers and the model takes 8"
    assert error.endswith(f"{expected}; add model.embedding=3\n")
    assert not (runs / "narrow").exists()


def test_fine_tuning_starts_from_the_weights_of_another_head(words, runs, discrete_run):
    discrete = discrete_run / "last.pt"
    still = [*words, *BRIEF, f"init_from={discrete}", "optim.rate.peak=0"]
    train_here([*still, "name=still"])
    before, after = load_checkpoint(discrete), load_checkpoint(runs / "still" / "last.pt")
    assert (before["attention"]["name"], after["attention"]["name"]) == ("discrete", "multimodal")
    assert_same(dict(after["model"]), dict(before["model"]))
    train_here([*words, *BRIEF, f"init_from={discrete.parent}", "name=tuned"])
    tuned = load_checkpoint(runs / "tuned" / "last.pt")
    assert not torch.equal(tuned["model"]["classify.weight"], before["model"]["classify.weight"])
    assert tuned["lines"][0]["component_counts"]


def test_a_run_resumes_with_the_threads_it_began_with(words, runs, capsys, monkeypatch):
    own = [*words, *BRIEF, "name=threads"]
    train_here([*own, "runtime.num_threads=1"])
    assert load_checkpoint(runs / "threads" / "last.pt")["num_threads"] == 1
    monkeypatch.setattr(torch_settings, "NARROW", 0)  # alone, it would take torch's default
    capsys.readouterr()
    train_here([*own, "runtime.num_threads=null", "optim.epochs=2", "resume=true"])
    assert load_checkpoint(runs / "threads" / "last.pt")["num_threads"] == 1
    assert "threads of torch: 1" in capsys.readouterr().out


def test_with_the_answers_prior_a_run_begins_at_their_frequencies(words, runs, small_dataset):
    still = [*words, *BRIEF, "optim.rate.peak=0", "optim.answer_prior=true"]
    train_here([*still, "name=prior"])
    stored = load_checkpoint(runs / "prior" / "last.pt")
    annotations = json.loads(
        (small_dataset / "v2_mscoco_train2014_annotations.json").read_text(encoding="utf-8")
    )["annotations"]
    for number, answer in enumerate(stored["answers"]["words"]):
        counts = [sum(each["answer"] == answer for each in a["answers"]) for a in annotations]
        scores = [min(1.0, 0.3 * count) for count in counts]
        expected = (sum(scores) + 0.5) / (len(annotations) + 1)
        assert stored["model"]["classify.bias"][number].sigmoid() == pytest.approx(expected, 1e-5)


def test_principal_components_are_those_of_the_training_images_and_stay_so(
    words, runs, small_dataset
):
    train_here([*words, *BRIEF, "model.pca=3", "name=reduced"])
    model = load_trained(runs / "reduced").model
    stores = open_stores(DataFolder(small_dataset).training_stores("train"))
    fitted = fit_pca(stores, stores.image_ids, 3)
    torch.testing.assert_close(model.pca.weight, fitted.directions)
    torch.testing.assert_close(model.pca.bias, -fitted.directions @ fitted.mean)
    assert model.project_features.in_features == 3
    train_here([*words, *BRIEF, "model.pca=100000", "name=unreduced"])
    assert load_trained(runs / "unreduced").model.sizes.pca == 0


def test_a_run_on_shared_images_is_killed_and_resumed_to_the_same_bits(words, runs):
    shared = [*words, "optim.share_images=true", "model.pca=3"]
    train_here([*shared, "name=shared"])
    assert interrupt(shared, "killed", runs, signal.SIGKILL) == -signal.SIGKILL
    train_here([*shared, "name=killed", "resume=true"])
    assert_ends_like(runs / "killed", runs / "shared")
