"""Whole runs: killed and resumed to the same bits, stopped on request, rejected, fine-tuned."""

import io
import re
import shutil
import signal
import sys

import numpy as np
import pytest
import torch
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from data.text.vocabulary import Vocabulary
from data.vqa.data_folder import DataFolder
from data.vqa.question_only import score_question_only
from mcan.checkpoint import load_checkpoint, save_checkpoint
from mcan.training.trackers.attention_samples import NUM_SAMPLES, PIXELS
from scripts import train
from tests.small_runs import (
    ROOT,
    assert_same,
    end_state,
    finish,
    kill,
    settings,
    start,
    train_here,
    wait_for_step,
)

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")

AT_EVERY_STEP = "runtime.checkpoint_every_minutes=0"


@pytest.fixture(autouse=True)
def _same_threads_afterwards():
    num_threads = torch.get_num_threads()
    yield
    torch.set_num_threads(num_threads)


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
    """A run that nothing interrupted."""
    train_here([*words, "name=reference"])
    return runs / "reference"


@pytest.fixture
def command(monkeypatch, capsys):
    """Run the command in this process: exit code and error."""

    def run(*overrides):
        monkeypatch.setattr(sys, "argv", ["train", *overrides])
        try:
            train.main()
        except SystemExit as stop:
            return stop.code, capsys.readouterr().err
        return 0, capsys.readouterr().err

    return run


def assert_ends_like(folder, reference):
    assert_same(end_state(folder), end_state(reference))
    assert_same(end_state(folder, "best.pt")["model"], end_state(reference, "best.pt")["model"])
    assert not [*folder.glob(".*.partial"), *folder.glob(".*.link")]


def progress_of(folder):
    newest = max(folder.glob("step_*.pt"))
    return load_checkpoint(newest)["progress"]


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


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGKILL, -signal.SIGKILL),
        (signal.SIGTERM, 75),
        (signal.SIGUSR1, 75),
    ],
)
def test_a_run_interrupted_in_an_epoch_resumes_to_the_same_bits(
    words, runs, reference, number, code
):
    """kill -9, or a request to stop, which has an exit code of its own."""
    name = f"interrupted_{number.name}"
    folder = runs / name
    process = start([*words, f"name={name}", AT_EVERY_STEP])
    wait_for_step(folder, 4, process)
    process.send_signal(number)
    ended, printed = finish(process)
    assert ended == code, printed
    assert progress_of(folder)["step"] > 0
    assert progress_of(folder)["global_step"] < end_state(reference)["progress"]["global_step"]
    train_here([*words, f"name={name}", "resume=true"])
    assert_ends_like(folder, reference)


def test_two_processes_killed_then_stopped_resume_to_the_same_bits(words, runs):
    """kill -9 of all, then SIGTERM to torchrun, then to the end."""
    code, printed = finish(start([*words, "name=two"], num_processes=2))
    assert code == 0, printed
    folder, again = runs / "two_interrupted", [*words, "name=two_interrupted", AT_EVERY_STEP]
    process = start(again, num_processes=2)
    wait_for_step(folder, 4, process)
    kill(process)
    killed_at = progress_of(folder)["global_step"]
    process = start([*again, "resume=true"], num_processes=2)
    wait_for_step(folder, killed_at + 4, process)
    process.terminate()
    finish(process)
    stopped_at = progress_of(folder)["global_step"]
    assert killed_at < stopped_at < progress_of(runs / "two")["global_step"]
    code, printed = finish(start([*again, "resume=true"], num_processes=2))
    assert code == 0, printed
    assert_ends_like(folder, runs / "two")


def test_a_run_killed_before_its_first_checkpoint_starts_again(words, runs, reference):
    (runs / "early").mkdir()
    train_here([*words, "name=early", "resume=true"])
    assert_ends_like(runs / "early", reference)
    assert (runs / "early" / "config.yaml").is_file()


def test_a_finished_run_resumes_to_itself(words, runs, reference):
    shutil.copytree(reference, runs / "finished")
    train_here([*words, "name=finished", "resume=true"])
    assert_ends_like(runs / "finished", reference)


def test_an_existing_run_is_not_touched_without_resume(words, reference, command):
    before = {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in reference.rglob("*")}
    code, error = command(*words, "name=reference")
    assert code == 2
    assert "reference exists already: continue it with resume=true" in error
    after = {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in reference.rglob("*")}
    assert before == after


def test_of_two_processes_in_one_folder_exactly_one_goes_on(words, runs):
    rivals = [start([*words, "name=rivals", "optim.epochs=1"]) for _ in range(2)]
    codes, printed = zip(*(finish(process) for process in rivals), strict=True)
    assert sorted(codes) == [0, 2], printed
    assert "exists already" in printed[codes.index(2)]
    assert len(end_state(runs / "rivals")["metrics"]) == 1


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("attention=discrete", "attention.name=multimodal, not discrete"),
        ("model.hidden=8", "model.hidden="),
        ("seed=2", "seed="),
        ("optim=paper", "optim."),
    ],
)
def test_a_run_does_not_go_on_with_other_settings(words, runs, reference, command, change, named):
    before = end_state(reference)
    kept = [w for w in words if not (change == "attention=discrete" and w.startswith("attention"))]
    code, error = command(*kept, "name=reference", "resume=true", change)
    assert code == 2
    assert f"the run to resume was started with {named}" in error
    assert_same(end_state(reference), before)


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


def test_numbers_that_overflow_end_the_run_and_name_the_step(words, runs, command):
    code, error = command(*words, "name=wild", "optim.rate.peak=1e30", AT_EVERY_STEP)
    assert code == 2
    assert "is not finite (questions: " in error
    weights = load_checkpoint(runs / "wild" / "last.pt")["model"]
    assert all(weight.isfinite().all() for weight in weights.values())


def test_a_run_of_no_epochs_is_rejected_and_leaves_no_folder(words, runs, command):
    code, error = command(*words, "name=none", "optim.epochs=0")
    assert code == 2
    assert "optim.epochs must be a whole number >= 1, not 0" in error
    assert not (runs / "none").exists()


@pytest.fixture(scope="module")
def discrete(small_dataset, runs):
    """A model trained with discrete attention."""
    words = settings(small_dataset, runs, "attention=discrete", "name=discrete", "optim.epochs=1")
    train_here([word for word in words if word not in ("attention.num_restarts=1",)])
    return runs / "discrete" / "last.pt"


def test_fine_tuning_starts_from_the_weights_of_another_head(words, runs, discrete):
    still = [*words, f"init_from={discrete}", "optim.epochs=1", "optim.rate.peak=0"]
    train_here([*still, "name=still"])
    before, after = load_checkpoint(discrete), load_checkpoint(runs / "still" / "last.pt")
    assert (before["attention"]["name"], after["attention"]["name"]) == ("discrete", "multimodal")
    assert_same(dict(after["model"]), dict(before["model"]))
    train_here([*words, f"init_from={discrete.parent}", "name=tuned", "optim.epochs=1"])
    tuned = load_checkpoint(runs / "tuned" / "last.pt")
    assert not torch.equal(tuned["model"]["classify.weight"], before["model"]["classify.weight"])
    assert tuned["lines"][0]["component_counts"]


def test_weights_of_another_vocabulary_are_rejected(words, runs, discrete, command):
    other = load_checkpoint(discrete)
    other["vocabulary"] = Vocabulary.build(["which word is this"]).state()
    save_checkpoint(runs / "other_words.pt", other)
    code, error = command(*words, f"init_from={runs / 'other_words.pt'}", "name=refused_words")
    assert code == 2
    assert "vocabulary" in error
    assert not (runs / "refused_words").exists()
    assert "other_words.pt" in error


def test_weights_of_another_architecture_are_rejected(words, discrete, command):
    code, error = command(*words, f"init_from={discrete}", "name=refused_size", "model.hidden=8")
    assert code == 2
    assert "discrete/last.pt has another architecture" in error


def test_word_vectors_of_another_width_name_the_setting_that_fits(words, runs, command, tmp_path):
    glove = tmp_path / "glove.txt"
    glove.write_text("circle 0.1 0.2 0.3\nred 0.3 0.2 0.1\n")
    code, error = command(*words, f"glove={glove}", "name=refused_width")
    assert code == 2
    expected = f"error: {glove} has vectors of 3 numbers and the model takes 8"
    assert error.endswith(f"{expected}; add model.embedding=3\n")
    assert not (runs / "refused_width").exists()
