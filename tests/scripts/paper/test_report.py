"""make paper: what is reported is what was measured, and nothing is done twice."""

import json
import re
import shutil
from pathlib import Path

import pytest
import torch

from data.vqa.data_folder import DataFolder
from data.vqa.question_only import score_question_only
from mcan.checkpoint import load_checkpoint, save_checkpoint
from mcan.evaluation.metrics import format_shares
from scripts.cli.command import read_words
from scripts.paper import __main__ as paper
from scripts.paper import measures
from scripts.paper.report import to_markdown
from scripts.paper.runs import FINE_TUNED, plan_runs
from tests.small_models import QUIET, find_command, read_error, run_here
from tests.small_runs import assert_ends_like, train_here


def call_here(arguments, what):
    """A command that measures, in this process; its own tests start it from the command line."""
    command, num_threads = find_command(arguments[1].split(".")[1]), torch.get_num_threads()
    (settings,) = command.compose(read_words([*arguments[2:], *QUIET]))
    command.run(settings)
    torch.set_num_threads(num_threads)


@pytest.fixture(scope="module")
def report(arguments):
    """The folder of a finished report, whose runs and measures were made in this process."""
    (settings,) = paper.main.compose(read_words(arguments))
    for run in paper.plan(settings):
        train_here([*run.overrides])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measures, "call", call_here)
        paper.main.run(settings)
    return Path(settings.runs)


def test_the_report_says_what_the_commands_measured(report, small_dataset):
    text = (report / "report.md").read_text()
    for name in ("discrete", "unimodal", "multimodal"):
        measured = json.loads((report / f"{name}-seed3/evaluate/val.json").read_text())
        (row,) = re.findall(rf"^\| {name} \| (.*) \|$", text.split("## Table 2")[0], re.MULTILINE)
        assert row.split(" | ")[3] == f"{measured['accuracy']:.2f}"
        control = json.loads((report / f"{name}-seed3/evaluate/val-other-images.json").read_text())
        assert row.split(" | ")[5] == f"{control['accuracy']:.2f}"
        assert control["other_images"]
        shares = format_shares(measured.get("component_shares", ())).removesuffix(" %")
        assert row.split(" | ")[6:] == [shares if name == "multimodal" else "–"]
    alone = score_question_only(DataFolder(small_dataset), "train", "val")
    accuracies = [alone.per_answer_type[name] for name in ("yes/no", "number", "other")]
    printed = [f"{accuracy:.2f}" for accuracy in (*accuracies, alone.overall)]
    assert find_row(text, "question text alone") == [*printed, "–", "–", "–"]
    compared = json.loads((report / "human_attention/seed3/val.json").read_text())
    for model in compared["models"]:
        assert f"{model['overall']['divergence_bits']['mean']:.3f}" in text
    picked = json.loads((report / "multimodal-seed3/lambda/table.json").read_text())["picks"][-1]
    assert f"{picked['lam']:g} (" in text
    under_picked = report / f"human_attention/seed3-lam{picked['lam']}/val.json"
    (model,) = json.loads(under_picked.read_text())["models"]
    bits = model["overall"]["divergence_bits"]["mean"]
    assert f"| multimodal, λ by cross-validation | {bits:.3f} |" in text
    assert "fine-tuned-seed3" in text


def test_a_second_call_does_nothing_again(report, arguments):
    before = list_times(report)
    code, printed, error = run_here(paper.main, *arguments, quiet=[])
    assert (code, error) == (0, "")
    assert list_times(report) == before
    assert printed.count("there already") == 4


def test_a_missing_run_is_trained_and_measured_by_processes_to_the_same_report(
    report, arguments, tmp_path
):
    folder = Path(shutil.copytree(report, tmp_path / "copy", copy_function=shutil.copy2))
    shutil.rmtree(folder / "unimodal-seed3")
    (folder / "report.md").unlink()
    again = folder / "human_attention" / "seed3"  # all heads, of which one is new
    kept = {path: when for path, when in list_times(folder).items() if path.parent != again}
    code, printed, error = run_here(paper.main, *arguments, f"runs={folder}", quiet=[])
    assert code == 0, error
    assert printed.count("there already") == 3
    assert_ends_like(folder / "unimodal-seed3", report / "unimodal-seed3")
    made, expected = ((each / "report.md").read_text() for each in (folder, report))
    assert made.split("## Figures")[0] == expected.split("## Figures")[0]
    assert kept.items() < list_times(folder).items()
    assert (folder / "report.html").stat().st_mtime_ns > max(kept.values())


def list_times(report):
    """When each file was written, but those of the report itself."""
    files = [path for path in report.rglob("*") if path.is_file() and path.stem != "report"]
    return {path: path.stat().st_mtime_ns for path in files}


def test_both_epochs_are_measured_and_named_when_asked_for(
    report, arguments, tmp_path, monkeypatch
):
    monkeypatch.setattr(measures, "call", call_here)
    folder = Path(shutil.copytree(report, tmp_path / "copy", copy_function=shutil.copy2))
    last = folder / "multimodal-seed3" / "last.pt"
    content = load_checkpoint(last)
    content["model"]["classify.bias"][3] += 100  # the last epoch gives one answer alone
    save_checkpoint(last, content)
    (settings,) = paper.main.compose(read_words([*arguments, f"runs={folder}", "epoch=both"]))
    made = paper.measure(settings, paper.plan(settings), folder)
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
    assert (folder / "human_attention" / "seed3-last" / "val.json").is_file()
    assert len([*(folder / "human_attention").glob("seed3-lam*-last/val.json")]) == 1


def test_people_are_compared_with_under_the_lambda_that_is_picked_for_a_runs_own_floor(
    report, arguments, tmp_path, monkeypatch
):
    monkeypatch.setattr(measures, "call", call_here)
    folder = Path(shutil.copytree(report, tmp_path / "copy", copy_function=shutil.copy2))
    run = folder / "multimodal-seed3"
    config = (run / "config.yaml").read_text()
    (run / "config.yaml").write_text(config.replace("floor: cell", "floor: 1.0e-06"))
    for name, lam in (("lambda", 0.1), ("lambda-paper-floor", 30.0)):
        table = json.loads((run / name / "table.json").read_text())
        table["picks"][-1]["lam"] = lam
        table["rows"] += [{**table["rows"][-1], "lam": lam}]
        (run / name / "table.json").write_text(json.dumps(table))
    (settings,) = paper.main.compose(read_words([*arguments, f"runs={folder}"]))
    made = paper.measure(settings, paper.plan(settings), folder)
    summary = folder / "human_attention" / "seed3-lam30.0" / "val.json"
    (options,) = json.loads(summary.read_text())["runs"].values()
    assert options["lam"] == 30.0
    assert "multimodal, λ by cross-validation" in to_markdown(made, folder)


def test_the_sparse_family_is_trained_beside_the_papers_heads_and_has_rows_of_its_own(
    report, arguments, tmp_path, monkeypatch
):
    monkeypatch.setattr(measures, "call", call_here)
    folder = Path(shutil.copytree(report, tmp_path / "copy", copy_function=shutil.copy2))
    (settings,) = paper.main.compose(
        read_words([*arguments, f"runs={folder}", "family=sparse", "figures=1"])
    )
    runs = paper.plan(settings)
    sparse = {run.kind: run for run in runs[4:]}
    assert [run.folder.name for run in sparse.values()] == [
        "discrete-entmax15-seed3", "discrete-sparsemax-seed3", "unimodal-paraboloid-seed3",
        "multimodal-paraboloid-seed3", "multimodal-entmax15-seed3", "multimodal-sparsemax-seed3",
    ]  # fmt: skip
    for run in sparse.values():
        train_here([*run.overrides])
    text = to_markdown(paper.measure(settings, runs, folder), folder)
    accuracy, sparsity, divergence, _ = re.split("^## (?:Table|Spar|λ).*$", text, flags=re.M)[1:]
    old = (report / "report.md").read_text().split("## Table 2")[0]
    assert {*re.findall(r"^\| .*", old, re.M)} < {*re.findall(r"^\| .*", accuracy, re.M)}
    compared = json.loads((folder / "human_attention/seed3-sparse/val.json").read_text())
    bits = {
        each["head"]: each["overall"]["divergence_bits"]["mean"]
        for each in compared["models"]
        if not each["blurred"]
    }
    assert [*bits] == [*sparse]
    for kind, run in sparse.items():
        found = json.loads((run.folder / "evaluate/val.json").read_text())
        assert find_row(accuracy, kind)[3] == f"{found['accuracy']:.2f}"
        assert find_row(divergence, kind)[0] == f"{bits[kind]:.3f}"
        shares = [found.get(name) for name in ("zero_weight_share", "outside_support_share")]
        assert [share is None for share in shares] == ["parab" in kind, "parab" not in kind]
        shown = ["–" if share is None else f"{100 * share:.1f}" for share in shares]
        components = format_shares(found.get("component_shares", ())).removesuffix(" %")
        assert find_row(accuracy, kind)[6] == (components if "multi" in kind else "–")
        assert find_row(sparsity, kind) == shown
        assert (f"| {kind}, λ by cross-validation |" in divergence) == ("multi" in kind)
        assert f"| {run.folder.name} | cell |" in text or "multi" not in kind
    assert find_row(divergence, "uniform attention") == find_row(
        (report / "report.md").read_text(), "uniform attention"
    )
    assert len([*(folder / "figures-sparse").glob("*.png")]) == 1


def test_one_head_alone_is_reported_without_what_needs_others(
    report, arguments, tmp_path, monkeypatch
):
    monkeypatch.setattr(measures, "call", call_here)
    folder = Path(shutil.copytree(report, tmp_path / "copy", copy_function=shutil.copy2))
    words = [*arguments, f"runs={folder}", "heads=[unimodal]", "figures=1"]
    (settings,) = paper.main.compose(read_words(words))
    (run,) = paper.plan(settings)
    text = to_markdown(paper.measure(settings, [run], folder), folder)
    all_heads = (report / "report.md").read_text()
    accuracy = find_row(all_heads.split("## Table 2")[0], "unimodal")
    assert find_row(text.split("## Table 2")[0], "unimodal") == accuracy[:-1]  # no K* to show
    assert find_row(text, "unimodal, another question's map") == (
        find_row(all_heads, "unimodal, another question's map")
    )
    assert "λ" not in text
    assert len([*(folder / "figures-unimodal").glob("*.png")]) == 1
    assert "- discrete attention: not in heads\n- multimodal attention: not in heads" in text


def test_a_head_of_ones_own_and_data_without_images_or_maps_make_a_report(
    arguments, data, tmp_path, monkeypatch
):
    monkeypatch.setattr(measures, "call", call_here)
    (tmp_path / "own" / "attention").mkdir(parents=True)
    (tmp_path / "own" / "attention" / "sharp.yaml").write_text("name: sharp\ntemperature: 0.5\n")
    train = next(word for word in arguments if word.startswith("train="))
    words = [
        *arguments, f"runs={tmp_path / 'p'}", f"data.root={data.root}", "heads=[sharp,discrete]",
        f"{train} modules=[examples.own_parts] --config-dir={tmp_path / 'own'}", "figures=1",
    ]  # fmt: skip
    (settings,) = paper.main.compose(read_words(words))
    runs = paper.plan(settings)
    assert [run.kind for run in runs] == ["sharp", "discrete"]
    for run in runs:
        train_here([*run.overrides])
    assert runs[0].config()["attention"]["temperature"] == 0.5
    text = to_markdown(paper.measure(settings, runs, tmp_path / "p"), tmp_path / "p")
    for run in runs:
        measured = json.loads((run.folder / "evaluate/val.json").read_text())
        assert find_row(text, run.kind)[3] == f"{measured['accuracy']:.2f}"
    assert re.findall("^## (.*)$", text, re.MULTILINE) == [
        "Table 1: accuracy, best epoch", "Figures", "Not run", "How this was made",
    ]  # fmt: skip
    assert f"- human attention: {data.root} has no maps of val\n" in text
    assert f"- figures: {data.image_folder('val')} lacks 12 of the 12 images\n" in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("", "data=custom needs the folder of your data: data.root=…"),
        ("data.root=nowhere", "there is no data in nowhere: give your folder with data.root=…"),
        ("data.root={data} heads=[discrete,mine]", "there is no attention head 'mine'; there are"),
        ("data.root={data} heads=[]", "paper needs seeds=[…] and heads=[…]: at least one of each"),
        (
            "measure=runtime.precison=auto",
            "measure, for evaluate: there is no setting 'runtime.prec",
        ),
        (
            "measure=attention.lam=1",
            "measure, for select_lambda: attention.lam is what is selected",
        ),
        ("measure=other_images=true", "measure, for select_lambda: there is no setting"),
        ("seeds=[1,1]", "seeds=[1,1] has an entry twice; name each once"),
        ("heads=[discrete,discrete]", "heads=[discrete,discrete] has an entry twice"),
        ("data.root={data}", "v2_mscoco_val2014_annotations.json does not exist, so split=val has"),
    ],
)
def test_what_is_missing_is_said_before_anything_is_made(words, sentence, data, tmp_path):
    data.annotations("val").unlink()
    words = [f"runs={tmp_path / 'p'}", "dataset=custom", *words.format(data=data.root).split()]
    assert sentence in read_error(paper.main, *words, quiet=[])
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize(
    ("words", "run", "key"),
    [
        ("data.root={data}", "discrete", "data.root=.*, not {data}"),
        ("train={train} optim.epochs=2", "discrete", "optim.epochs=1, not 2"),
        ("train={train} optim.batch_size=8", "discrete", "optim.batch_size=20, not 8"),
        ("train={train} runtime.limit_batches=1", "discrete", "runtime.limit_batches=None, not 1"),
        ("train={train} attention.ridge=0.5", "unimodal", "attention.ridge=0.01, not 0.5"),
        ("fine_tuning_epochs=2", "fine-tuned", "optim.epochs=1, not 2"),
    ],
)
def test_runs_with_other_settings_are_not_taken_for_those_of_the_report(
    report, arguments, data, words, run, key
):
    train = next(each.removeprefix("train=") for each in arguments if each.startswith("train="))
    heads = "heads=[unimodal]" if run == "unimodal" else "heads=[discrete,multimodal]"
    name, _, value = words.partition("=")
    own = f"{name}={value.format(train=train, data=data.root)}"
    error = read_error(paper.main, *arguments, heads, own, quiet=[])
    assert re.search(f"{report}/{run}-seed3 was trained with {key.format(data=data.root)};", error)


def test_settings_of_all_runs_win_over_the_preset_of_a_dataset(tmp_path):
    shared = ["model=small", "optim.epochs=3", "data=shapes", "attention=unimodal"]
    kinds = {}
    for run in plan_runs("custom", [1], tmp_path, shared, 2, heads=["discrete", "multimodal"]):
        settings = run.settings()
        kinds[run.kind] = settings.attention["name"]
        assert (settings.data.name, settings.model.hidden) == ("custom", 512)
        assert settings.optim.epochs == (2 if run.kind == FINE_TUNED else 3)
    assert kinds == {"discrete": "discrete", "multimodal": "multimodal", FINE_TUNED: "multimodal"}
    (run,) = plan_runs("custom", [1], tmp_path, [], 2, heads=["unimodal"])
    assert "experiment=photos" in run.overrides
    (run,) = plan_runs(
        "custom", [1], tmp_path, ["experiment=paper_discrete"], 2, heads=["discrete"]
    )
    assert (run.settings().data.name, run.settings().optim.epochs) == ("custom", 15)


def find_row(text, name):
    """The cells of the only row of that name."""
    (row,) = re.findall(rf"^\| {name} \| (.*) \|$", text, re.MULTILINE)
    return row.split(" | ")


def test_the_page_needs_nothing_else(report):
    page = (report / "report.html").read_text()
    assert "http" not in page
    # λ under both floors, of one or both epochs
    assert page.count("data:image/png;base64,") in (2, 4)
