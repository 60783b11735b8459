"""make lambda: every row equals a plain evaluation, and λ is cross-validated honestly."""

import csv
import json
import shutil

import numpy as np
import pytest
import torch
from PIL import Image

from data.accuracy import score_results
from data.questions import load_annotations
from data.splits import Folder
from scripts import evaluate, select_lambda
from scripts.dataset import open_split
from scripts.trained import load_trained
from scripts.validation import Validation, describe_components, name_answers
from tests.small_models import compose, listing, run_here
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
    """A plain evaluation with every λ and k_max: metrics, and each question's accuracy."""
    config = compose("evaluate", ["checkpoint=x"])
    config.data.root = str(small_dataset)
    floor = selected[3] if selected[3] == "cell" else float(selected[3])
    evaluations = {}
    for k_max in (1, 2, 3, 4):
        trained = load_trained(peaky_run, changed={"k_max": k_max, "floor": floor})
        split = open_split(config.data, "val", trained.words, config.runtime)
        annotations = load_annotations([Folder(small_dataset).annotations("val")])
        answers = list(trained.words.answers.words)
        loader = split.loader(trained.words, config.runtime, pin=False, share_images=True)
        validation = Validation(loader, annotations, answers, 128, "none")
        for lam in LAMS:
            trained.model.pool_image.head.lam = lam
            predictions = validation.predict(trained.model, ALONE, torch.float32)
            scores = score_results(annotations, name_answers(predictions, answers))
            evaluations[k_max, lam] = (scores, describe_components(predictions))
    return evaluations


def test_each_row_equals_a_plain_evaluation_with_that_penalty_and_limit(selected, plain):
    rows = selected[1]["rows"]
    assert [(row["k_max"], row["lam"]) for row in rows] == [
        (k_max, lam) for k_max in (1, 2, 3, 4) for lam in LAMS
    ]
    for row in rows:
        scores, components = plain[row["k_max"], row["lam"]]
        assert row["accuracy"] == scores.overall
        assert row["accuracy_by_type"] == scores.per_answer_type
        assert row["collapsed_share"] == components["collapsed_share"]
        counts = components["component_counts"] + [0] * row["k_max"]
        shares = [round(100 * count / 60, 2) for count in counts[: row["k_max"]]]
        assert row["shares"] == shares


def test_the_rows_differ(selected):
    """What the test above compares has something to tell apart."""
    rows = selected[1]["rows"]
    assert len({tuple(row["shares"]) for row in rows}) > 8
    has_collapsed = any(row["collapsed_share"] > 0 for row in rows)
    assert has_collapsed == (selected[3] == "1e-6")


def test_a_row_equals_the_evaluate_command_with_the_printed_setting(selected, peaky_run, tmp_path):
    words = "attention.lam=0.3", "attention.k_max=3", f"attention.floor={selected[3]}"
    output = f"output={tmp_path}"
    assert run_here(evaluate.main, f"checkpoint={peaky_run}", output, *words)[0] == 0
    report = json.loads((tmp_path / "val.json").read_text())
    row = next(r for r in selected[1]["rows"] if (r["k_max"], r["lam"]) == (3, 0.3))
    assert row["accuracy"] == report["accuracy"]
    assert row["accuracy_by_type"] == report["accuracy_by_answer_type"]
    assert row["shares"] == report["components"]["all questions"]["shares"]
    assert row["collapsed_share"] == report["collapsed_share"]


def test_the_csv_holds_the_same_rows(selected):
    with open(selected[0] / "table.csv", newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 20
    for line, row in zip(lines, selected[1]["rows"], strict=True):
        assert (int(line["k_max"]), float(line["lam"])) == (row["k_max"], row["lam"])
        assert float(line["accuracy"]) == row["accuracy"]
        assert float(line["accuracy yes/no"]) == row["accuracy_by_type"]["yes/no"]
        shares = [float(line[f"share K*={k}"]) for k in (1, 2, 3, 4)]
        assert shares == row["shares"] + [0.0] * (4 - row["k_max"])
        assert float(line["collapsed_share"]) == row["collapsed_share"]


def test_with_one_component_there_is_nothing_to_pick(selected):
    pick = selected[1]["picks"][0]
    assert (pick["k_max"], pick["lam"], pick["lam_of_folds"]) == (1, None, [])
    assert pick["held_out_accuracy"] == pick["accuracy"]


def test_what_is_printed_names_the_picked_penalty_and_how_to_use_it(selected):
    folder, content, printed, _ = selected
    lam = content["picks"][-1]["lam"]
    assert f"attention.lam={lam:g}" in printed
    assert str(folder / "table.csv") in printed
    assert len(printed.splitlines()) < 10


def test_there_is_a_picture(selected):
    with Image.open(selected[0] / "table.png") as picture:
        pixels = np.asarray(picture.convert("RGB"))
    assert min(pixels.shape[:2]) > 500
    for color in ("0072B2", "D55E00", "009E73", "CC79A7"):  # a line and an area of each k
        wanted = [int(color[n : n + 2], 16) for n in (0, 2, 4)]
        assert (np.abs(pixels.astype(int) - wanted).max(-1) < 12).sum() > 20, color


def test_a_head_without_a_penalty_is_refused(discrete_run):
    before = listing(discrete_run)
    code, printed, error = run_here(select_lambda.main, f"checkpoint={discrete_run}")
    assert (code, printed) == (2, "")
    assert "was trained with discrete attention, which has no λ to select" in error
    assert error.count("\n") == 1
    assert listing(discrete_run) == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["folds=1"], "folds is 1, expected 2 to 12"),
        (["folds=13"], "folds is 13, expected 2 to 12"),
        (["grid.low=0"], "expected 0 < low"),
        (["grid.low=60"], "expected 0 < low"),
        (["grid.count=0", "grid.extra=[]"], "the grid of λ is empty"),
        (["grid.extra=[-1]"], "grid.extra holds -1"),
        (["grid.nope=1"], "there is no setting 'grid.nope'"),
        (["split=test"], "split=test has no accuracy"),
        (["attention.lam=1"], "there is no setting 'attention.lam'"),
    ],
)
def test_a_mistake_ends_in_one_sentence_and_writes_nothing(peaky_run, words, message):
    before = listing(peaky_run)
    code, printed, error = run_here(select_lambda.main, f"checkpoint={peaky_run}", *words)
    assert (code, printed) == (2, "")
    assert message in error
    assert error.count("\n") == 1
    assert listing(peaky_run) == before
