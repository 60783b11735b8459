"""make paper: what is reported is what was measured, and nothing is done twice."""

import json
import re
import shutil
from pathlib import Path

import pytest

from mcan.checkpoint import load_checkpoint, save_checkpoint
from scripts.cli.command import read_words
from scripts.paper import __main__ as paper
from scripts.paper import measures, published
from scripts.paper.report import Report, to_html, to_markdown
from scripts.paper.runs import HEADS, Run, plan_runs
from scripts.paper.tables import (
    NOT_RUN,
    Table,
    name_hardest,
    spread,
    tabulate_accuracy,
    tabulate_divergence,
)
from tests.small_models import find_command, run_here
from tests.small_runs import SMALL, finish, start


@pytest.fixture(scope="module")
def arguments(small_dataset, tmp_path_factory):
    runs = tmp_path_factory.mktemp("paper")
    own = ["optim.epochs=1", "optim.batch_size=20", f"data.root={small_dataset}"]
    words = [word for word in SMALL if not word.startswith(("data", "attention"))]
    train = " ".join([*words, *own])
    measure = "runtime.num_threads=1 runtime.show_progress=false"
    return [
        "dataset=custom", "seeds=[3]", f"runs={runs}", f"train={train}", f"measure={measure}",
        "fine_tuning_epochs=1", "figures=0",
    ]  # fmt: skip


def make_paper(arguments):
    """The command's exit code and all that it printed."""
    return finish(start(arguments, module="scripts.paper"))


@pytest.fixture(scope="module")
def report(arguments):
    """The folder of a finished report."""
    code, printed = make_paper(arguments)
    assert code == 0, printed
    runs = next(word for word in arguments if word.startswith("runs=")).removeprefix("runs=")
    return Path(runs)


def test_the_report_says_what_the_commands_measured(report):
    text = (report / "report.md").read_text()
    for name in ("discrete", "unimodal", "multimodal"):
        measured = json.loads((report / f"{name}-seed3/evaluate/val.json").read_text())
        (row,) = re.findall(rf"^\| {name} \| (.*) \|$", text.split("## Table 2")[0], re.MULTILINE)
        assert row.split(" | ")[3] == f"{measured['accuracy']:.2f}"
        control = json.loads((report / f"{name}-seed3/evaluate/val-other-images.json").read_text())
        assert row.split(" | ")[5] == f"{control['accuracy']:.2f}"
        assert control["other_images"]
    compared = json.loads((report / "human_attention/seed3/val.json").read_text())
    for model in compared["models"]:
        assert f"{model['overall']['divergence_bits']['mean']:.3f}" in text
    (under_picked,) = json.loads((report / "human_attention/seed3-picked/val.json").read_text())[
        "models"
    ]
    bits = under_picked["overall"]["divergence_bits"]["mean"]
    assert f"| multimodal, λ by cross-validation | {bits:.3f} |" in text
    picked = json.loads((report / "multimodal-seed3/lambda/table.json").read_text())["picks"][-1]
    assert f"{picked['lam']:g} (" in text
    assert "fine-tuned-seed3" in text
    assert "test-standard: needs a submission" in text


def test_a_second_call_does_nothing_again(report, arguments):
    before = {path: path.stat().st_mtime_ns for path in report.glob("*/**/*") if path.is_file()}
    code, printed = make_paper(arguments)
    assert code == 0, printed
    after = {path: path.stat().st_mtime_ns for path in report.glob("*/**/*") if path.is_file()}
    assert after == before
    assert printed.count("there already") == 4


def test_both_epochs_are_measured_and_named_when_asked_for(
    report, arguments, tmp_path, monkeypatch
):
    def call_here(arguments, what):
        code, _, error = run_here(
            find_command(arguments[1].removeprefix("scripts.")), *arguments[2:]
        )
        assert code == 0, error

    monkeypatch.setattr(measures, "call", call_here)
    folder = Path(shutil.copytree(report, tmp_path / "copy", copy_function=shutil.copy2))
    last = folder / "multimodal-seed3" / "last.pt"
    content = load_checkpoint(last)
    content["model"]["classify.bias"][3] += 100  # the last epoch gives one answer alone
    save_checkpoint(last, content)
    (settings,) = paper.main.compose(read_words([*arguments, f"runs={folder}", "epoch=both"]))
    made = paper.measure(settings, plan_runs("custom", [3], folder, [], 1), folder)
    text = to_markdown(made, folder)
    best, later = text.split("## Table 1: accuracy, last epoch")
    assert best == (report / "report.md").read_text().split("## Figures")[0]
    assert (
        "of the epoch with the highest accuracy on the validation split: discrete-seed3 1," in best
    )
    assert "of the last epoch, as in the published code: discrete-seed3 1," in later
    measured = json.loads((last.parent / "evaluate-last" / "val.json").read_text())
    (row,) = re.findall(r"^\| multimodal \| (.*) \|$", later.split("## Table 2")[0], re.MULTILINE)
    assert row.split(" | ")[3] == f"{measured['accuracy']:.2f}"
    assert f"| multimodal | {row} |" not in best
    for name in ("lambda-last", "lambda-paper-floor-last"):
        table = json.loads((last.parent / name / "table.json").read_text())
        assert table["checkpoint"] == str(last)
    for name in ("seed3-last", "seed3-picked-last"):
        assert (folder / "human_attention" / name / "val.json").is_file()


def test_the_page_needs_nothing_else(report):
    page = (report / "report.html").read_text()
    assert "http" not in page
    assert page.count("data:image/png;base64,") in (
        2,
        4,
    )  # λ under both floors, of one or both epochs


def test_a_run_that_fails_stops_the_report(arguments, tmp_path):
    words = [word for word in arguments if not word.startswith(("runs=", "train="))]
    code, printed = make_paper([*words, f"runs={tmp_path / 'p'}", "train=data.root=nowhere"])
    assert code == 2
    assert "discrete-seed3 ended with exit code 2" in printed
    assert not (tmp_path / "p" / "report.md").exists()


@pytest.mark.parametrize(
    ("train", "sentence"),
    [
        ("optim.epochs=0", "optim.epochs must be a whole number >= 1, not 0"),
        ("data.root={root}", "no word vectors {root}/glove.840B.300d.txt: .*glove=<file>.*=none"),
        ("glove={root}/mine.txt", "there are no word vectors {root}/mine.txt: "),
    ],
)
def test_settings_and_word_vectors_of_all_runs_are_checked_before_the_first(
    train, sentence, tmp_path
):
    words = [f"train={train.format(root=tmp_path)}", f"runs={tmp_path / 'p'}", "dataset=vqa_v2"]
    code, _, error = run_here(paper.main, *words, quiet=[])
    assert code == 2
    assert re.fullmatch(f"error: .*{sentence.format(root=tmp_path)}.*\n", error)
    assert not (tmp_path / "p").exists()


def test_a_run_that_has_started_needs_no_word_vectors_nor_one_that_is_fine_tuned(tmp_path):
    runs = plan_runs("vqa_v2", [1], tmp_path, ["glove=nowhere.txt"], 2)
    assert [run.kind for run in runs if run_check_fails(run)] == [*HEADS]
    for run in runs:
        run.folder.mkdir()
    assert not any(map(run_check_fails, runs))


def run_check_fails(run):
    try:
        run.check()
    except FileNotFoundError:
        return True
    return False


def test_a_run_whose_folder_is_there_resumes_even_without_a_checkpoint(tmp_path):
    assert Run("discrete", 1, tmp_path, ()).start_arguments(1)[-1] == "resume=true"
    assert Run("discrete", 1, tmp_path / "new", ()).start_arguments(1)[-1] == "scripts.train"


def test_text_of_a_report_is_escaped():
    table = Table("<b>", ("a|b", "<i>"), (("x|y", "&"),), "<script>")
    report = Report("<h1>", [("<u>", "&")], [table], [], ["<s>"])
    assert not re.search(r"<(b|i|u|s|script)>", to_html(report))
    assert "x\\|y" in to_markdown(report, Path())


def test_what_was_not_measured_is_said_to_be_not_run():
    rows = {row[0]: row for row in tabulate_accuracy({}, {}, "shapes", 0).rows}
    assert rows["unimodal"][4] == NOT_RUN
    assert rows["unimodal"][6] == NOT_RUN
    assert rows["unimodal"][7] == "70.41 / 70.73"
    assert ("multimodal", NOT_RUN, "0.54") in tabulate_divergence([None], [None]).rows


def test_the_hardest_template_is_the_lowest_of_any_seed():
    seeds = [{"accuracy_by_template": {"a": 80.0, "b": 70.0}}, {"accuracy_by_template": {"a": 65}}]
    assert name_hardest(seeds) == "a 65.00"
    assert name_hardest([{}]) == "–"


def test_the_spread_is_over_seeds():
    assert spread([80.0, 84.0]) == "82.00 ± 2.83"
    assert spread([80.0]) == "80.00"


def test_published_accuracies_are_averages_of_their_types():
    """Overall lies between the types; shares of types that explain it exist for both splits."""
    for table in (published.TEST_DEV, published.TEST_STANDARD):
        for row in table.values():
            assert row["number"] < row["overall"] < row["yes/no"]
    assert sum(published.SHARES) == pytest.approx(100)
