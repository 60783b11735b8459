"""make lambda: every row equals a plain evaluation, and λ is cross-validated honestly."""

import csv
import json
import shutil

import numpy as np
import pytest
import torch
from PIL import Image

from data.vqa.data_folder import DataFolder
from mcan.evaluation.evaluation_split import open_evaluation_split
from mcan.evaluation.evaluator import evaluate_split
from mcan.evaluation.trained_model import load_trained
from scripts import evaluate, select_lambda
from tests.small_models import compose, run_here
from tests.small_runs import ALONE

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")

LAMS = [0.0, 0.1, 0.3, 1.0, 3.0]
GRID = ["grid.count=0", "grid.extra=[3,0,0.1,0.3,1]"]


@pytest.fixture(scope="module", params=["cell", "1e-6"])
def selected(request, peaky_run, tmp_path_factory):
    """The folder of a table, its content, what was printed, and the floor of the covariances."""
    folder = tmp_path_factory.mktemp("selected")
    shutil.copy(peaky_run / "best.pt", folder)
    code, printed, error = run_here(
        select_lambda.main,
        f"checkpoint={folder / 'best.pt'}",
        f"attention.floor={request.param}",
        "folds=3",
        *GRID,
    )
    assert (code, error) == (0, "")
    content = json.loads((folder / "lambda" / "table.json").read_text())
    return folder / "lambda", content, printed, request.param


@pytest.fixture(scope="module")
def plain(selected, peaky_run, small_dataset):
    """The metrics of a plain evaluation with every λ and k_max."""
    runtime = compose("evaluate", ["checkpoint=x"]).runtime
    floor = selected[3] if selected[3] == "cell" else float(selected[3])
    evaluations = {}
    for k_max in (1, 2, 3, 4):
        trained = load_trained(peaky_run, changed={"k_max": k_max, "floor": floor})
        folder = DataFolder(small_dataset)
        split = open_evaluation_split(folder, "val", trained.words, runtime, ALONE.device)
        for lam in LAMS:
            trained.model.pool_image.head.lam = lam
            evaluation = evaluate_split(trained.model, split, ALONE, torch.float32)
            evaluations[k_max, lam] = evaluation.metrics
    return evaluations


def test_each_row_equals_a_plain_evaluation_with_that_penalty_and_limit(selected, plain):
    rows = selected[1]["rows"]
    assert [(row["k_max"], row["lam"]) for row in rows] == [
        (k_max, lam) for k_max in (1, 2, 3, 4) for lam in LAMS
    ]
    for row in rows:
        setting = {"k_max": row["k_max"], "lam": row["lam"]}
        metrics = plain[row["k_max"], row["lam"]]
        assert row == {**{name: metrics.get(name) for name in row}, **setting}


def test_the_rows_differ(selected):
    """What the test above compares has something to tell apart."""
    rows = selected[1]["rows"]
    assert len({tuple(row["component_shares"]) for row in rows}) > 8
    has_collapsed = any(row["collapsed_share"] > 0 for row in rows)
    assert has_collapsed == (selected[3] == "1e-6")


def test_a_row_equals_the_evaluate_command_with_the_printed_setting(selected, peaky_run, tmp_path):
    words = "attention.lam=0.3", "attention.k_max=3", f"attention.floor={selected[3]}"
    output = f"output={tmp_path}"
    assert run_here(evaluate.main, f"checkpoint={peaky_run}", output, *words)[0] == 0
    report = json.loads((tmp_path / "val.json").read_text())
    row = next(r for r in selected[1]["rows"] if (r["k_max"], r["lam"]) == (3, 0.3))
    assert row == {**{name: report.get(name) for name in row}, "k_max": 3, "lam": 0.3}


def test_the_csv_holds_the_same_rows(selected):
    with open(selected[0] / "table.csv", newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 20
    for line, row in zip(lines, selected[1]["rows"], strict=True):
        assert (int(line["k_max"]), float(line["lam"])) == (row["k_max"], row["lam"])
        assert float(line["accuracy"]) == row["accuracy"]
        assert float(line["accuracy yes/no"]) == row["accuracy_by_answer_type"]["yes/no"]
        shares = [float(line[f"share K*={k}"]) for k in (1, 2, 3, 4)]
        assert shares == row["component_shares"] + [0.0] * (4 - row["k_max"])
        assert float(line["collapsed_share"]) == row["collapsed_share"]


def test_with_one_component_there_is_nothing_to_pick(selected):
    pick = selected[1]["picks"][0]
    assert (pick["k_max"], pick["lam"], pick["lam_of_folds"]) == (1, None, [])
    assert pick["held_out_accuracy"] == pick["accuracy"]


def test_what_is_printed_names_the_picked_penalty_and_how_to_use_it(selected):
    folder, content, printed, floor = selected
    lam = content["picks"][-1]["lam"]
    floor = floor if floor == "cell" else float(floor)
    options = f"attention.floor={floor} attention.lam={lam:g}"  # the floor that it was picked with
    assert printed.endswith(f"make evaluate CHECKPOINT={folder.parent}/best.pt ARGS='{options}'\n")
    assert str(folder / "table.csv") in printed
    assert len(printed.splitlines()) < 10


def test_there_is_a_picture(selected):
    with Image.open(selected[0] / "table.png") as picture:
        pixels = np.asarray(picture.convert("RGB"))
    assert min(pixels.shape[:2]) > 500
    for color in ("0072B2", "D55E00", "009E73", "CC79A7"):  # a line and an area of each k
        wanted = [int(color[n : n + 2], 16) for n in (0, 2, 4)]
        assert (np.abs(pixels.astype(int) - wanted).max(-1) < 12).sum() > 20, color
