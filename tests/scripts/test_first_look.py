"""A first look at a long run: a few batches, a trace of a few steps, debug=quick."""

import gzip
import json
import re

import pytest

from data.text.word_lists import prepare_words
from data.vqa.data_folder import DataFolder
from data.vqa.question_only import score_question_only
from mcan.checkpoint import load_checkpoint
from mcan.evaluation.evaluation_split import open_evaluation_split
from mcan.evaluation.trained_model import load_trained
from mcan.runtime.settings import Runtime
from scripts import train
from tests.mcan.runtime.together import run_together
from tests.small_models import listing, read_error
from tests.small_runs import (
    ALONE,
    AT_EVERY_STEP,
    assert_ends_like,
    assert_same,
    compose,
    end_state,
    settings,
    train_here,
)

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")

LIMITED = ["runtime.limit_batches=4", "runtime.evaluation_batch_size=7"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return tmp_path_factory.mktemp("first_look")


@pytest.fixture(scope="module")
def limited(small_dataset, runs):
    train_here(settings(small_dataset, runs, "name=limited", *LIMITED))
    return runs / "limited"


def test_a_limited_run_has_so_many_steps_and_says_what_it_was_validated_on(limited):
    lines = end_state(limited)["metrics"]
    assert [line["step"] for line in lines] == [4, 8]
    for line in lines:
        assert line["limit_batches"] == 4
        assert 4 <= line["validation_questions"] <= 4 * 7 < 60
        assert sum(line["component_counts"]) == line["validation_questions"]
    assert "  limit_batches: 4\n" in (limited / "config.yaml").read_text()


def test_the_summary_of_a_limited_run_says_so_and_compares_on_the_same_questions(
    small_dataset, runs, capsys
):
    words = settings(small_dataset, runs, "name=shown", "optim.epochs=1", *LIMITED)
    train_here(words)
    printed = capsys.readouterr().out
    (line,) = end_state(runs / "shown")["metrics"]
    number = line["validation_questions"]
    assert "NOT A WHOLE RUN: runtime.limit_batches=4 trained on at most 4 batches" in printed
    assert f"validated on {number} questions" in printed
    folder, runtime = DataFolder(small_dataset), Runtime(evaluation_batch_size=7)
    split = open_evaluation_split(
        folder, "val", prepare_words(folder), runtime, ALONE.device, limit_batches=4
    )
    guessed = score_question_only(folder, "train", "val", split.question_ids)
    assert len(guessed.per_question) == number
    (overall,) = [row.split() for row in printed.splitlines() if row.startswith("  overall")]
    assert overall == ["overall", f"{line['accuracy']:.2f}", f"{guessed.overall:.2f}"]
    assert guessed.overall != score_question_only(folder, "train", "val").overall


def test_a_limited_run_resumes_within_an_epoch_to_the_same_bits(small_dataset, runs, limited):
    words = settings(small_dataset, runs, "name=resumed", *LIMITED, AT_EVERY_STEP)
    train_here([*words, "runtime.keep=20"])
    folder = runs / "resumed"
    for path in folder.glob("step_*.pt"):  # as if it had been killed after step 6
        if int(path.stem[5:]) > 6:
            path.unlink()
    train_here([*words, "resume=true"])
    assert_ends_like(folder, limited)


def test_a_limited_run_is_not_resumed_as_a_whole_one(small_dataset, runs, limited):
    words = settings(small_dataset, runs, "name=limited", "resume=true", LIMITED[1])
    before = listing(limited)
    for more, named in ([], "4, not null"), (["runtime.limit_batches=5"], "4, not 5"):
        error = read_error(train.main, *words, *more, quiet=[])
        assert f"the run to resume was started with runtime.limit_batches={named}" in error
    assert listing(limited) == before


def read_trace(folder):
    (path,) = folder.glob("profile_*")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return path, json.load(file)


def test_a_trace_holds_as_many_steps_as_asked_and_changes_nothing(small_dataset, runs, limited):
    words = settings(small_dataset, runs, "name=traced", "runtime.limit_batches=8")
    train_here([*words, "runtime.profile=3", "optim.epochs=1"])
    path, trace = read_trace(runs / "traced")
    names = [event.get("name", "") for event in trace["traceEvents"]]
    assert sum(name.startswith("Optimizer.step") for name in names) == 3
    assert len({name for name in names if name.startswith("ProfilerStep#")}) == 3
    first, last = map(int, re.fullmatch(r"profile_steps_(\d+)-(\d+)\.json\.gz", path.name).groups())
    assert first > 0
    assert last == first + 2 < 8
    train_here([*[w for w in words if "traced" not in w], "name=plain", "optim.epochs=1"])
    assert_ends_like(runs / "traced", runs / "plain")


def test_more_steps_than_an_epoch_has_are_rejected_before_a_run_begins(small_dataset, runs):
    words = settings(small_dataset, runs, "name=long", "runtime.limit_batches=8")
    error = read_error(train.main, *words, "runtime.profile=5", quiet=[])
    assert (
        "runtime.profile=5 is more than can be recorded of an epoch of 8 steps: at most 4" in error
    )
    assert not (runs / "long").exists()


@pytest.fixture
def debug(small_dataset, tmp_path):
    """A run of debug=quick beside a real one of the same name, and what was printed."""
    words = settings(small_dataset, tmp_path, "name=mine", "debug=quick")
    return [word for word in words if not word.startswith(("optim.epochs", "figures"))]


def test_debug_quick_trains_validates_saves_and_resumes_beside_the_real_run(
    debug, tmp_path, multimodal_run, capsys
):
    real = tmp_path / "mine"
    real.mkdir()
    (real / "best.pt").write_bytes((multimodal_run / "best.pt").read_bytes())
    before = listing(real)
    train_here(debug)
    printed = capsys.readouterr().out
    folder = tmp_path / "debug" / "mine"
    assert f"the run in {folder} is built again from its checkpoint and resumed" in printed
    assert "NOT A WHOLE RUN: runtime.limit_batches=8" in printed
    state = end_state(folder)
    assert [line["step"] for line in state["metrics"]] == [8, 16]
    assert len(list((folder / "figures").glob("*.png"))) == 1
    assert load_trained(folder).epoch in (1, 2)
    train_here(debug)  # again: the folder is its own
    assert_same(end_state(folder), state)
    assert listing(real) == before


def train_together(world, words):
    train.train(compose(words), world)


def test_debug_quick_with_a_trace_runs_on_two_processes_and_sees_the_same_limited_batches(
    debug, tmp_path
):
    words = [*debug, "figures=0", "runtime.evaluation_batch_size=7"]
    traced = [*words, "name=by_two", "runtime.profile=2"]
    jobs = [(2, train_together, (traced,)), (1, train_together, ([*words, "name=alone"],))]
    run_together(jobs, tmp_path)
    alone, by_two = (tmp_path / "debug" / name for name in ("alone", "by_two"))
    traces = sorted(path.name for path in by_two.glob("profile_*"))
    assert traces == ["profile_steps_12-13.json.gz", "profile_steps_4-5.json.gz"]
    lines = end_state(by_two)["metrics"]
    assert [line["step"] for line in lines] == [8, 16]
    for name in ("step", "validation_questions", "learning_rate"):
        assert [line[name] for line in lines] == [
            line[name] for line in end_state(alone)["metrics"]
        ]
    assert 8 <= lines[0]["validation_questions"] <= 8 * 7 < 60


def test_debug_quick_leaves_a_folder_alone_that_is_not_its_own(debug, tmp_path, multimodal_run):
    folder = tmp_path / "debug" / "mine"
    folder.mkdir(parents=True)
    (folder / "best.pt").write_bytes((multimodal_run / "best.pt").read_bytes())
    before = listing(folder)
    error = read_error(train.main, *debug, quiet=[])
    assert "debug/mine is not of debug=quick and stays" in error
    (folder / "config.yaml").write_text("seed: 1\nis_debug: false\n")
    assert "is not of debug=quick" in read_error(train.main, *debug, quiet=[])
    (folder / "config.yaml").unlink()
    assert listing(folder) == before
    assert "resumes by itself" in read_error(train.main, *debug, "resume=true", quiet=[])


def test_debug_quick_has_the_settings_of_the_experiment_that_it_tries():
    (tried,) = train.main.compose(["experiment=paper_multimodal", "debug=quick"])
    assert (tried.model.hidden, tried.optim.batch_size, tried.attention["lam"]) == (512, 64, 5.0)
    assert (tried.word_vectors, tried.optim.epochs, tried.runtime.limit_batches) == (None, 2, 8)


def test_a_checkpoint_of_a_limited_run_keeps_the_limit(limited):
    assert load_checkpoint(limited / "last.pt")["config"]["runtime"]["limit_batches"] == 4
