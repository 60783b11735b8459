"""make sweep: nothing is done twice, nothing that failed is hidden, λ needs no training."""

import contextlib
import csv
import importlib
import io
import json
import re
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer

from mcan.evaluation.lambda_selection import Row
from scripts import select_lambda, sweep_report
from scripts.sweep.command_line import expand, name_job, take_lambda
from scripts.sweep.heat_map import draw_heat_map
from scripts.sweep.job import is_of_any_command
from scripts.sweep.plan import Plan, load_plan, merge
from scripts.sweep.report import describe_best, report
from scripts.sweep.results import Cell, Result, choose_best, write_results
from scripts.sweep.states import FAILED, is_done, write_record
from tests.scripts.mistakes import assert_one_sentence
from tests.small_models import listing, run_here
from tests.small_runs import (
    assert_same,
    end_state,
    finish,
    settings,
    start,
    train_here,
    wait_for_step,
)

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")

main = importlib.import_module("scripts.sweep.__main__").main


def names(*words):
    return [job.name for job in expand(words)]


def test_every_combination_is_a_job_and_a_list_in_brackets_is_one_value():
    jobs = expand(["optim.betas=[0.9,0.98],[0.9,0.99]", "seed=1,2", "optim.epochs=3"])
    assert [job.swept for job in jobs] == [
        {"optim.betas": betas, "seed": seed}
        for betas in ("[0.9,0.98]", "[0.9,0.99]")
        for seed in ("1", "2")
    ]
    assert all("optim.epochs=3" in job.overrides for job in jobs)
    assert jobs[0].name == "betas_0.9_0.98-seed_1"
    (alone,) = expand(["optim.betas=[0.9,0.98]"])
    assert (alone.name, alone.swept) == ("run", {})


def test_ranges_and_repeated_values_are_as_hydra_has_them():
    assert names("seed=range(1,4)") == ["seed_1", "seed_2", "seed_3"]
    assert names("seed=1,1,2") == ["seed_1", "seed_2"]


def test_names_tell_jobs_apart_whatever_their_values_are():
    assert name_job({"data.seed": "1", "seed": "2"}) == "data.seed_1-seed_2"
    alike = names("name_of='a b','a_b','a/b'")
    assert len(set(alike)) == 3
    assert not any("/" in name or " " in name for name in alike)


def test_a_list_of_lambda_is_taken_off_the_runs_and_sorted():
    words, lams = take_lambda(["attention.lam=5,0.5,0", "seed=1,2"])
    assert (words, lams) == (["seed=1,2"], [0.0, 0.5, 5.0])
    assert take_lambda(["attention.lam=3"]) == (["attention.lam=3"], None)
    with pytest.raises(ValueError, match="each must be a number, not \\{linear"):
        take_lambda(["attention.lam={linear:[0,4]},3"])


def test_what_is_of_training_alone_does_not_reach_the_table_of_lambda():
    words = ["runtime.num_threads=1", "runtime.limit_batches=2", "modules=[a]", "seed=1"]
    assert [word for word in words if is_of_any_command(word)] == [words[0], words[2]]


def test_a_sweep_may_grow_but_a_job_keeps_its_settings(tmp_path):
    def plan(*words):
        return Plan(tmp_path, expand(words), [0.0], 5, 1)

    plan("seed=1,2", "optim.epochs=3").save()
    grown = merge(plan("seed=2,3", "optim.epochs=3", "runtime.num_threads=1"))
    assert [job.name for job in grown.jobs] == ["seed_1", "seed_2", "seed_3"]
    with pytest.raises(ValueError, match=r"other settings .*optim.epochs=4.*sweep.name="):
        merge(plan("seed=1,2", "optim.epochs=4"))
    assert [job.name for job in load_plan(tmp_path).jobs] == ["seed_1", "seed_2"]


@pytest.mark.parametrize(
    "word",
    [
        "runtime.limit_batches=2", "runtime.mixing=all", "runtime.precision=bfloat16",
        "++runtime.evaluation_batch_size=9", "runtime.deterministic=true", "runtime.compile=true",
    ],
)  # fmt: skip
def test_a_job_keeps_what_of_runtime_its_results_depend_on(tmp_path, word):
    Plan(tmp_path, expand(["seed=1,2", word]), [0.0], 5, 1).save()
    key = re.escape(word.partition("=")[0])
    with pytest.raises(ValueError, match=rf"other settings \(compare {key}="):
        merge(Plan(tmp_path, expand(["seed=1,2"]), [0.0], 5, 1))


def test_a_run_on_a_part_of_its_batches_is_marked_in_the_report(tmp_path, capsys):
    jobs = expand(["seed=1,2"])
    lines = {"seed_1": {"limit_batches": 2}, "seed_2": {}}
    for name, line in lines.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "best.pt").touch()
        config = "{seed: 1, optim: {epochs: 1}, attention: {name: discrete}}"
        (tmp_path / name / "config.yaml").write_text(config)
        line = {"accuracy": 60.0, "accuracy_by_answer_type": {"other": 60.0}, **line}
        (tmp_path / name / "metrics.jsonl").write_text(f"{json.dumps(line)}\n")
    report(Plan(tmp_path, jobs, [0.0], 5, 1))
    assert "\nNOT WHOLE RUNS (runtime.limit_batches): seed_1\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["attention.kmax=2,3"], "the head 'multimodal' has no option 'kmax'; its options are"),
        (["optim.epochs=1,x"], "optim.epochs must be a whole number >= 1, not 'x'"),
        (["seed=1,2", "optim.epoch=3"], "did you mean 'optim.epochs'?"),
        (["attention=multimodal,multimodel"], "no choice 'multimodel' of the group attention"),
        (["attention.lam=1,-2"], "grid.extra holds -2.0, but λ is zero or positive"),
        (["launcher.gpus=1,2"], "only settings of the training can be lists"),
        (["launcher=slrum"], "no choice 'slrum' of the group launcher"),
        (["name=a,b"], "name cannot be a list"),
        (["debug=quick", "seed=1,2"], "debug=quick is for make train"),
        (["--config-name=train", "seed=1,2"], "no flag --config-name=train"),
        (["--multi", "--run", "seed=1,2"], "no flag --run"),
        (["seed=1,2", "sweep.wait=false"], "sweep.wait=false needs LAUNCHER=slurm"),
        (["seed=1,2", "sweep.folds=1"], "sweep.folds must be a whole number >= 2, not 1"),
        (["seed=1,2", "sweep.parallel=0"], "sweep.parallel must be one of auto or a whole number"),
        (["data=custom", "data.root=/no/where", "seed=1,2"], "there is no data in /no/where"),
    ],
)
def test_a_mistake_anywhere_in_a_sweep_ends_it_in_one_sentence_before_it_starts(
    tmp_path, words, sentence
):
    assert_one_sentence(main, [*words, f"runs={tmp_path / 'runs'}"], sentence)
    assert not (tmp_path / "runs").exists()


PLAIN, STOPPED = "peak_0.001-seed_1", "peak_0.001-seed_2"


@pytest.fixture(scope="module")
def words(small_dataset, tmp_path_factory):
    """Four jobs of which two cannot end well."""
    runs = tmp_path_factory.mktemp("swept")
    return [
        *settings(small_dataset, runs, "runtime.checkpoint_every_minutes=0", "sweep.name=s"),
        "optim.rate.peak=1e-3,1e30", "seed=1,2", "attention.lam=0,1,5", "sweep.folds=3",
        "attention.k_max=2",
    ]  # fmt: skip


def train_plain(words, folder, name, seed):
    """A run like that of a job, without a sweep."""
    kept = [w for w in words if not w.startswith(("optim.rate", "seed", "attention.lam", "sweep"))]
    train_here([*kept, f"runs={folder}", f"name={name}", "optim.rate.peak=1e-3", f"seed={seed}"])


@pytest.fixture(scope="module")
def folder(words):
    """Of a sweep whose first job is done before it starts."""
    (runs,) = [word.removeprefix("runs=") for word in words if word.startswith("runs=")]
    folder = Path(runs) / "s"
    train_plain(words, folder, PLAIN, 1)
    grid = ["grid.count=0", "grid.extra=[0.0,1.0,5.0]", "folds=3"]
    code, _, error = run_here(select_lambda.main, f"checkpoint={folder / PLAIN}", *grid)
    assert code == 0, error
    return folder


@pytest.fixture(scope="module")
def done_before(folder):
    return listing(folder / PLAIN)


@pytest.fixture(scope="module")
def interrupted(folder, done_before, words):
    """The sweep is asked to stop while its second job trains: code and words."""
    process = start(words, module="scripts.sweep")
    wait_for_step(folder / STOPPED, 3, process)
    process.send_signal(signal.SIGINT)
    return finish(process)


@pytest.fixture(scope="module")
def swept(interrupted, folder, words):
    """The same sweep, started again, and here; a third job failed before: code and words."""
    plan = load_plan(folder)
    write_record(plan, plan.jobs[2], FAILED, "error: a disk was full")
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")  # what jobs print are bytes
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.setattr(sys, "argv", ["sweep", *words])
        with pytest.raises(SystemExit) as end:
            main()
    printed.flush()
    return end.value.code, printed.buffer.getvalue().decode()


def test_an_interrupted_sweep_says_so_and_leaves_a_report(interrupted, folder):
    code, printed = interrupted
    assert code == 75, printed
    assert f"interrupted: {STOPPED}: resumes when the sweep is started again" in printed
    assert "missing: peak_1e+30-seed_2: not started yet" in printed
    assert "Traceback" not in printed
    assert (folder / "results.csv").is_file()


def test_the_second_start_goes_on_and_ends_like_plain_runs(swept, folder, words, tmp_path):
    _, printed = swept
    assert f"{STOPPED}: resumes" in printed
    train_plain(words, tmp_path, "plain", 2)
    assert_same(end_state(folder / STOPPED), end_state(tmp_path / "plain"))


def test_no_start_touches_what_is_done_and_each_tries_what_failed(
    swept, interrupted, folder, done_before
):
    for _, printed in (interrupted, swept):
        assert "4 runs, 1 of them there already" in printed
    assert swept[1].count(": trains") + swept[1].count(": resumes") == 3
    assert listing(folder / PLAIN) == done_before


def test_jobs_that_fail_are_listed_with_their_reason_and_hold_nobody_up(swept):
    code, printed = swept
    assert code == 1
    assert "2 of 4 runs are done" in printed
    for seed in (1, 2):
        assert f"failed: peak_1e+30-seed_{seed}: error: loss or gradient of step" in printed


def test_the_table_has_every_lambda_of_every_model_and_the_failed_jobs(swept, folder):
    _, printed = swept
    with open(folder / "results.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    done = [row for row in rows if row["state"] == "done"]
    assert [(row["seed"], float(row["lam"])) for row in done] == [
        (seed, lam) for seed in "12" for lam in (0, 1, 5)
    ]
    for row in done:
        table = json.loads((folder / row["job"] / "lambda" / "table.json").read_text())
        (source,) = [
            each for each in table["rows"] if (each["k_max"], each["lam"]) == (2, float(row["lam"]))
        ]
        assert float(row["accuracy"]) == source["accuracy"]
    assert [row["accuracy"] for row in rows if row["state"] == "failed"] == ["", ""]
    best = max(
        (np.mean([float(row["accuracy"]) for row in done if row["lam"] == lam]), float(lam))
        for lam in {row["lam"] for row in done}
    )
    assert f"attention.lam={best[1]:g}: {best[0]:.2f} ±" in printed
    assert Image.open(folder / "heat_map.png").size[0] > 500


def test_tensorboard_shows_the_settings_of_all_runs_under_one_folder(swept, folder):
    board = EventMultiplexer().AddRunsFromDirectory(str(folder)).Reload()
    shown = board.PluginRunToTagToContent("hparams")
    assert set(shown) == {f"peak_0.001-seed_{seed}/tensorboard" for seed in (1, 2)}


def test_a_third_start_would_try_the_failed_jobs_alone_and_the_report_needs_no_start(
    swept, folder, words
):
    code, printed, _ = run_here(main, *words, "launcher.dry_run=true", quiet=[])
    assert code == 0
    first, *commands = printed.splitlines()
    assert first == "4 runs, 2 of them there already"
    names = [command.split("name=")[-1] for command in commands]
    assert names == [f"peak_1e+30-seed_{seed}" for seed in (1, 2)]
    code, told, error = run_here(sweep_report.main, f"sweep={folder}", quiet=[])
    assert (code, error) == (0, "")
    assert "2 of 4 runs are done" in told
    assert "failed: peak_1e+30-seed_1: error: " in told
    assert_one_sentence(sweep_report.main, [f"sweep={folder.parent}"], "it holds no sweep.json")


def test_a_job_whose_head_takes_lam_but_no_k_max_is_done_without_a_table(tmp_path):
    (job,) = jobs = expand(["attention=own"])
    plan = Plan(tmp_path, jobs, [0.5], 5, 1)
    folder = tmp_path / job.name
    folder.mkdir()
    (folder / "best.pt").touch()
    (folder / "config.yaml").write_text("optim: {epochs: 1}\nattention: {name: mine, lam: 1.0}\n")
    (folder / "metrics.jsonl").write_text("{}\n")
    assert is_done(plan, job)


def test_a_model_without_lambda_has_accuracies_in_the_csv_and_nothing_of_lambda(tmp_path):
    jobs = expand(["attention=discrete,multimodal"])
    rows = [
        Row(0, 0.0, 60.0, {"other": 60.0}, [], 0.0),
        Row(2, 0.5, 61.0, {"other": 61.0}, [75.0, 25.0], 0.1),
    ]
    results = [Result(job, 1, row, None) for job, row in zip(jobs, rows, strict=True)]
    states = {job.name: "done" for job in jobs}
    write_results(Plan(tmp_path, jobs, [0.5], 5, 1), results, states, tmp_path / "a.csv")
    with open(tmp_path / "a.csv", newline="", encoding="utf-8") as file:
        discrete, multimodal = csv.DictReader(file)
    empty = {name for name, cell in discrete.items() if not cell}
    assert empty == {"k_max", "lam", "share K*=1", "share K*=2", "collapsed_share"}
    assert all(multimodal.values())


def test_the_best_setting_has_the_most_seeds_the_highest_mean_and_the_fewest_components():
    def cell(k_max, lam, *accuracies):
        return Cell((), k_max, lam, accuracies, None)

    best = cell(2, 5.0, 80.0, 82.0)
    others = [cell(2, 1.0, 80.0, 82.0), cell(3, 5.0, 81.0, 81.0), cell(4, 1.0, 99.0)]
    assert choose_best([*others, best, cell(2, 9.0, 70.0, 80.0)]) == best
    assert describe_best(best).endswith("k_max=2 attention.lam=5: 81.00 ± 1.41 (2 seeds)")
    assert describe_best(cell(4, 1.0, 99.0)).endswith("attention.lam=1: 99.00 (1 seed)")


def test_the_heat_map_has_a_panel_for_each_further_setting(tmp_path):
    cells = [
        Cell((f"optim.epochs={epochs}",), k_max, lam, (60 + k_max + lam, 61.5 + epochs), 60.0)
        for epochs in (3, 6)
        for k_max in (2, 3, 4, 6)
        for lam in (0.0, 0.5, 1.0, 2.0, 5.0)
    ]
    draw_heat_map(cells, choose_best(cells), "two panels", tmp_path / "two.png")
    draw_heat_map(cells[:20], choose_best(cells[:20]), "one panel", tmp_path / "one.png")
    one, two = (np.asarray(Image.open(tmp_path / f"{name}.png")) for name in ("one", "two"))
    assert two.shape[0] > 1.5 * one.shape[0]
    assert len(np.unique(one.reshape(-1, one.shape[-1]), axis=0)) > 20
