"""Files that earlier code wrote load and resume: a checkpoint, a store, a run's folder, a sweep.

make_fixtures.sh wrote them, with the code of the commit that README.md names.
"""

import csv
import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from attention import Grid
from data.features.reader import FeatureStore
from data.vqa.data_folder import DataFolder
from data.vqa.questions import load_questions
from mcan.checkpoint import load_checkpoint
from mcan.evaluation.metric_names import rename_old_metrics
from mcan.evaluation.trained_model import load_trained
from tests.small_models import QUIET, find_command, run_here
from tests.small_runs import without_times

WRITTEN = Path(__file__).parent / "version_0_1"
RUNS = ("discrete", "multimodal")
CLOSE = ("loss", "learning_rate")
MULTIMODAL = [
    "data=custom", "data.root=dataset", "data.answers_more_than=1", "figures=0", *QUIET,
    "model.embedding=4", "model.hidden=4", "model.num_layers=1", "model.num_heads=2",
    "model.pooling=4", "model.output=8", "model.dropout=0", "optim.batch_size=6",
    "optim.epsilon=1e-4", "optim.rate={peak:1e-2,warmup_steps:2,decay_share:0.4}",
    "optim.answer_prior=false", "optim.clip=null", "optim.epochs=3", "name=multimodal", "seed=4",
    "init_from=runs/first", "attention=multimodal", "attention.k_max=3",
    "attention.num_restarts=1", "attention.lam={linear:[0,1]}",
    "attention.train_iterations={steps:{1:2,3:4}}",
]  # fmt: skip


@pytest.fixture(scope="module")
def expected():
    return json.loads((WRITTEN / "expected.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def arrays():
    with np.load(WRITTEN / "expected.npz") as file:
        return dict(file)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A copy, which is the working directory: every path in the files is relative to it."""
    monkeypatch.chdir(tmp_path)
    for name in ("dataset", "runs"):
        shutil.copytree(WRITTEN / name, tmp_path / name)
    for table in tmp_path.glob("runs/sweep/*/lambda/table.json"):
        table.touch()  # a table must not be older than its model; git keeps no times
    return tmp_path


def run(command, *words):
    """What a command prints."""
    code, printed, error = run_here(find_command(command), *words, quiet=[])
    assert code == 0, printed + error
    return printed


def read_json(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_run_that_was_stopped_in_its_second_epoch_goes_on_to_the_same_end(here, expected, arrays):
    folder = here / "runs" / "multimodal"
    before = load_checkpoint(folder / "last.pt")["progress"]
    assert (before["epoch"], before["step"] > 0) == (2, True)
    run("train", *MULTIMODAL, "resume=true")
    content = load_checkpoint(folder / "last.pt")
    assert content["progress"] == pytest.approx(expected["resumed"]["progress"])
    wanted = {n.removeprefix("resumed/"): a for n, a in arrays.items() if n.startswith("resumed/")}
    assert content["model"].keys() == wanted.keys()
    for name, weights in wanted.items():
        torch.testing.assert_close(
            content["model"][name], torch.from_numpy(weights), rtol=1e-4, atol=1e-5
        )
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert len(lines) == len(expected["resumed"]["lines"]) == 3
    for line, wanted_line in zip(lines, expected["resumed"]["lines"], strict=True):
        # accuracies, λ, iterations and K* are the same to the last digit
        close = {name: pytest.approx(wanted_line[name], rel=1e-4) for name in CLOSE}
        wanted_metrics = {**rename_old_metrics(wanted_line), **close}
        for name in ("component_counts", "component_shares"):  # K* that were never chosen: new
            missing = len(line[name]) - len(wanted_metrics[name])
            wanted_metrics[name] = [*wanted_metrics[name], *[0] * missing]
        assert {name: line[name] for name in wanted_metrics} == wanted_metrics
    assert load_trained(folder).epoch == expected["resumed"]["best_epoch"]


@pytest.mark.parametrize("name", RUNS)
def test_the_best_checkpoint_gives_the_answers_and_the_report_it_gave(here, name):
    run("evaluate", f"checkpoint=runs/{name}", "split=val", "output=again", *QUIET)
    before, now = WRITTEN / "runs" / name / "evaluate", here / "again"
    answers = f"vqa_OpenEnded_mscoco_val2014_{name}_results.json"
    assert {path.name for path in now.iterdir()} == {"val.json", answers}
    assert read_json(now / answers) == read_json(before / answers)
    wanted = rename_old_metrics(read_json(before / "val.json"))
    found = read_json(now / "val.json")
    # options that the run was not given are new there, with their defaults
    found["attention"] = {option: found["attention"][option] for option in wanted["attention"]}
    assert found.pop("perplexity") > 1  # new too
    assert without_times(found) == without_times(wanted)


def test_a_checkpoint_takes_a_density_that_came_after_it(here):
    words = ["checkpoint=runs/multimodal", "split=val", "output=again", *QUIET]
    run("evaluate", *words, "attention.density=paraboloid")
    before = rename_old_metrics(
        read_json(WRITTEN / "runs" / "multimodal" / "evaluate" / "val.json")
    )
    found = read_json(here / "again" / "val.json")
    assert found["attention"]["density"] == "paraboloid"
    assert found["component_counts"] == before["component_counts"]  # selected by the Gaussians


@pytest.mark.parametrize("name", RUNS)
@torch.inference_mode()
def test_the_best_checkpoint_gives_every_answer_the_score_it_gave(arrays, name):
    trained = load_trained(WRITTEN / "runs" / name)
    folder = DataFolder(WRITTEN / "dataset")
    questions = load_questions([folder.questions("val")])
    scores = []
    with FeatureStore(folder.store("val")) as store:
        for image_id, text in zip(questions.image_ids.tolist(), questions.texts, strict=True):
            tokens = torch.tensor([trained.words.encode(text)])
            features = torch.from_numpy(store.rows(image_id).copy())[None]
            scores.append(trained.model(features, Grid.of([store.size(image_id)]), tokens)[0])
    assert questions.ids.tolist() == arrays["scores/question_ids"].tolist()
    torch.testing.assert_close(
        torch.stack(scores), torch.from_numpy(arrays[f"scores/{name}"]), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("reader", ["mmap", "pread"])
@pytest.mark.parametrize("split", ["train", "val"])
def test_a_store_holds_the_same_bits_and_says_the_same_of_itself(expected, arrays, split, reader):
    wanted = expected["stores"][split]
    with FeatureStore(DataFolder(WRITTEN / "dataset").store(split), reader) as store:
        assert json.loads(store.manifest.dump()) == wanted["manifest"]
        assert store.image_ids.tolist() == [int(number) for number in wanted["grids"]]
        for number, grid in wanted["grids"].items():
            rows = store.rows(int(number))
            assert list(store.size(int(number))) == grid
            assert rows.dtype == np.float16
            assert hashlib.sha256(rows.tobytes()).hexdigest() == wanted["sha256"][number]
        first = int(store.image_ids[0])
        some = store.rows(first)[::10]
        assert some.tobytes() == arrays[f"rows/{split}/{first}"].tobytes()


def test_a_finished_sweep_is_reported_as_it_was(here, expected):
    table = here / "runs" / "sweep" / "results.csv"
    table.unlink()
    printed = run("sweep_report", "sweep=runs/sweep").splitlines()
    assert printed[0].startswith("runs/sweep: 2 of 2 ")
    best = expected["sweep_report"][1].partition(";")[0]  # setting, accuracy and spread
    assert printed[1].startswith(best)
    with (
        open(table, newline="") as now,
        open(WRITTEN / "runs/sweep/results.csv", newline="") as old,
    ):
        assert list(csv.DictReader(now)) == list(csv.DictReader(old))


def test_a_finished_sweep_has_nothing_left_to_do(here):
    (job,) = [j for j in read_json(here / "runs/sweep/sweep.json")["jobs"] if j["name"] == "seed_1"]
    words = [word for word in job["words"] if not word.startswith("seed=")]
    checkpoints = {path: path.stat().st_mtime_ns for path in here.glob("runs/sweep/*/*.pt")}
    run("sweep", *words, "seed=1,2", "attention.lam=0,1", "sweep.name=sweep", "sweep.folds=2")
    assert checkpoints == {path: path.stat().st_mtime_ns for path in here.glob("runs/sweep/*/*.pt")}
