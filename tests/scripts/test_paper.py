"""make paper: what is reported is what was measured, and nothing is done twice."""

import json
import os
import re
import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
import torch

from data.io.atomic_files import write_json
from data.vqa.data_folder import DataFolder
from data.vqa.question_only import score_question_only
from mcan.checkpoint import load_checkpoint, save_checkpoint
from mcan.evaluation.lambda_selection import Pick, Row
from mcan.evaluation.metrics import format_shares
from mcan.training.summary import mean_and_deviation
from scripts.cli.command import read_words
from scripts.cluster.planned_run import PlannedRun
from scripts.paper import __main__ as paper
from scripts.paper import measures, published
from scripts.paper.accuracy_tables import name_hardest, tabulate_accuracy
from scripts.paper.provenance import describe_machine
from scripts.paper.report import Report, to_html, to_markdown
from scripts.paper.requirements import list_missing
from scripts.paper.runs import FINE_TUNED, HEADS, Run, plan_runs, train_runs
from scripts.paper.tables import Table, tabulate_divergence, tabulate_lambda
from tests.small_models import QUIET, find_command, read_error, run_here
from tests.small_runs import SMALL, assert_ends_like, train_here


@pytest.fixture(scope="module")
def arguments(small_dataset, tmp_path_factory):
    runs = tmp_path_factory.mktemp("paper")
    words = [word for word in SMALL if not word.startswith("data")]
    train = " ".join([*words, "optim.epochs=1", "optim.batch_size=20", "tracker=[]"])
    measure = "runtime.num_threads=1 runtime.show_progress=false"
    return [
        "dataset=custom", f"data.root={small_dataset}", "seeds=[3]", f"runs={runs}",
        f"train={train}", f"measure={measure}", "fine_tuning_epochs=1", "figures=0", "parallel=2",
    ]  # fmt: skip


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


@pytest.fixture
def two_runs(tmp_path):
    """Two runs of which nothing but a checkpoint is there."""
    runs = [Run(tmp_path / name, (), name, 1) for name in "ab"]
    for run in runs:
        run.folder.mkdir()
        run.checkpoint().touch()
    return runs


def retrain(run):
    """Have the checkpoint be newer than all other files."""
    later = time.time() + 60
    os.utime(run.checkpoint(), (later, later))


def test_a_comparison_is_made_again_when_any_of_its_runs_has_been_trained_again(
    two_runs, small_dataset, tmp_path, monkeypatch
):
    called = []

    def compare(arguments, what):
        called.append(what)
        write_json(summary, {})

    monkeypatch.setattr(measures, "call", compare)
    measured = measures.Measures(tmp_path, DataFolder(small_dataset), "val", (), "best")
    summary = tmp_path / "human_attention" / "seed1" / "val.json"
    write_json(summary, {})
    measured.compare_with_people(two_runs, "seed1")
    assert called == []
    retrain(two_runs[0])
    measured.compare_with_people(two_runs, "seed1")
    assert called == ["human_attention of a, b, best epoch"]


def test_figures_are_drawn_until_all_are_there_and_again_after_training(
    two_runs, small_dataset, tmp_path, monkeypatch
):
    called = []

    def draw(arguments, what):
        called.append(what)
        (tmp_path / "figures").mkdir(exist_ok=True)
        (tmp_path / "figures" / f"{len(called)}.png").touch()
        if len(called) == 1:
            raise ValueError("killed")

    def list_drawn():
        return [path.name for path in measured.draw_figures(two_runs, 1, "figures")]

    monkeypatch.setattr(measures, "call", draw)
    measured = measures.Measures(tmp_path, DataFolder(small_dataset), "val", (), "best")
    with pytest.raises(ValueError, match="killed"):
        list_drawn()
    assert [list_drawn(), list_drawn()] == [["2.png"], ["2.png"]]
    retrain(two_runs[0])
    assert list_drawn() == ["3.png"]


@dataclass(frozen=True)
class Noted(PlannedRun):
    """A run that notes when it begins and ends, and how."""

    kind: str
    program: str

    def start_arguments(self, num_processes):
        return ["-c", f"{NOTE}{self.program}\nnote('end')", str(self.folder)]


NOTE = """
import os, pathlib, signal, sys, time
def note(event):
    with open(sys.argv[1] + '.txt', 'a') as file:
        gpu = os.environ.get('CUDA_VISIBLE_DEVICES')
        print(event, time.monotonic(), os.environ.get('OMP_NUM_THREADS'), gpu, file=file)
def find_others():
    return [*pathlib.Path(sys.argv[1]).parent.glob('*.here')]
note('begin')
"""
PREPARE = """
note('prepared')
os.mkdir(sys.argv[1])
"""
MEET = (
    PREPARE
    + """
pathlib.Path(sys.argv[1] + '.here').touch()
while len(find_others()) < 2: time.sleep(0.01)
"""
)
STOP = (
    PREPARE
    + """
signal.signal(signal.SIGTERM, lambda *_: (note('asked'), sys.exit(75)))
pathlib.Path(sys.argv[1] + '.here').touch()
time.sleep(600)
"""
)
FAIL = """
while not find_others(): time.sleep(0.01)
sys.exit(3)
"""


def read_notes(run):
    """The times of a run's events, and the threads and the GPU it was given."""
    lines = [line.split() for line in Path(f"{run.folder}.txt").read_text().splitlines()]
    return {event: float(moment) for event, moment, *_ in lines}, {tuple(at[2:]) for at in lines}


def test_parallel_runs_train_together_and_fine_tuning_waits_for_all_of_them(tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    kinds = [("discrete", MEET), ("discrete → multimodal", ""), ("unimodal", MEET), ("a", "")]
    runs = [Noted(tmp_path / str(n), (), kind, program) for n, (kind, program) in enumerate(kinds)]
    train_runs(runs, 1, parallel=2)
    times, given = zip(*map(read_notes, runs), strict=True)
    assert times[0]["prepared"] < times[2]["begin"] < times[0]["end"]
    assert times[1]["begin"] > max(times[n]["end"] for n in (0, 2, 3))
    assert times[3]["begin"] > min(times[n]["end"] for n in (0, 2))
    num_threads = str(max(1, len(os.sched_getaffinity(0)) // 2))
    assert given[0] == {(num_threads, "0")}
    assert given[2] == {(num_threads, "1")}


def test_a_run_that_fails_asks_those_beside_it_to_stop_and_starts_no_other(tmp_path):
    programs = [STOP, FAIL, ""]
    runs = [Noted(tmp_path / str(n), (), "a", each) for n, each in enumerate(programs)]
    with pytest.raises(ValueError, match=r"^1 ended with exit code 3; the same"):
        train_runs(runs, 1, parallel=2)
    assert {*read_notes(runs[0])[0]} == {"begin", "prepared", "asked"}
    assert not Path(f"{runs[2].folder}.txt").exists()


def test_runs_in_parallel_do_not_share_several_gpus():
    with pytest.raises(ValueError, match="parallel is 2 and gpus is 4: all runs would share"):
        train_runs([], 4, parallel=2)


def test_a_run_that_fails_stops_the_report(arguments, tmp_path):
    own = [f"runs={tmp_path / 'p'}", "train=init_from=nowhere", "parallel=1"]
    code, _, error = run_here(paper.main, *arguments, *own, quiet=[])
    assert code == 2
    assert "discrete-seed3 ended with exit code 2" in error
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
    assert PlannedRun(tmp_path, ()).start_arguments(1)[-1] == "resume=true"
    assert PlannedRun(tmp_path / "new", ()).start_arguments(1)[-1] == "scripts.train"


def test_text_of_a_report_is_escaped():
    table = Table("<b>", ("a|b", "<i>"), (("x|y", "&"),), "<script>")
    report = Report("<h1>", [("<u>", "&")], [table], [], ["<s>"])
    assert not re.search(r"<(b|i|u|s|script)>", to_html(report))
    assert "x\\|y" in to_markdown(report, Path())


EVALUATED = {"accuracy": 80.0, "accuracy_by_answer_type": {"other": 80.0}, "num_questions": 7}


@pytest.mark.parametrize("data", ["shapes", "vqa_v2", "custom"])
def test_the_papers_numbers_are_beside_those_of_its_datasets_alone(data):
    bits = {"divergence_bits": {"mean": 0.5}}
    model = {"head": "multimodal", "blurred": False, "overall": bits}
    model["against_another_questions_map"] = bits
    compared = {"models": [model], "controls": {"centre": bits}}
    tables = [
        tabulate_accuracy({"unimodal": [EVALUATED]}, {"unimodal": [EVALUATED]}, EVALUATED, data),
        tabulate_divergence([compared], [], data),
        tabulate_lambda({}, data),
    ]
    rows = [
        ("unimodal", "80.00", "80.00", "80.00", "70.41 / 70.73"),
        ("centre: mean map of other images", "0.500", "–"),
        ("paper, VQA-v2", "1e-6", "5", "–", "80.8 / 12.4 / 4.4 / 2.4", "–"),
    ]
    if data == "custom":
        rows = [rows[0][:-1], rows[1][:-1], None]
    assert [table.rows[0] if table.rows else None for table in tables] == rows
    assert (("multimodal", "0.500", "0.54") in tables[1].rows) == (data != "custom")
    text = to_markdown(Report("", [], tables, [], []), Path())
    assert ("The paper's" in text) == (data != "custom")
    assert "## Not run" not in text


def test_a_model_of_one_component_has_a_row_without_lambda():
    pick = asdict(Pick(1, None, 80.0, [], 79.0, 0.5, []))
    rows = [asdict(Row(1, lam, 80.0, {}, [100.0], 0.0)) for lam in (0.5, 5.0)]
    table = tabulate_lambda({"cell": [{"run": "a", "picks": [pick], "rows": rows}]}, "custom")
    assert table.rows == (("a", "cell", "–", "79.00 ± 0.50", "100.0", "0.0"),)


def test_an_answer_type_of_ones_own_has_a_column():
    found = {**EVALUATED, "accuracy_by_answer_type": {"colour": 60.0, "yes/no": 90.0}}
    table = tabulate_accuracy({"a": [found]}, {"a": [found]}, found, "custom")
    assert table.header == ("attention", "yes/no", "colour", "overall", "shown other images")


@pytest.mark.parametrize("dataset", ["shapes", "vqa_v2"])
def test_what_the_paper_has_in_addition_is_said_to_be_not_run(dataset, small_dataset):
    (settings,) = paper.main.compose([f"dataset={dataset}"])
    missing = list_missing(settings, DataFolder(small_dataset), "val")
    assert "test-standard: needs a submission" in missing[0]
    assert len(missing) == 1 + (dataset == "shapes")


def test_the_processors_of_a_report_are_those_that_it_may_use(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 1000)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {4, 7, 9})
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert describe_machine().startswith("3 processors ")


def test_the_hardest_template_is_the_lowest_of_any_seed():
    seeds = [{"accuracy_by_template": {"a": 80.0, "b": 70.0}}, {"accuracy_by_template": {"a": 65}}]
    assert name_hardest(seeds) == "a 65.00"
    assert name_hardest([{}]) == "–"


def test_the_deviation_is_over_seeds():
    assert mean_and_deviation([80.0, 84.0]) == "82.00 ± 2.83"
    assert mean_and_deviation([80.0]) == "80.00"


def test_published_accuracies_are_averages_of_their_types():
    """Overall lies between the types; shares of types that explain it exist for both splits."""
    for table in (published.TEST_DEV, published.TEST_STANDARD):
        for row in table.values():
            assert row["number"] < row["overall"] < row["yes/no"]
    assert sum(published.SHARES) == pytest.approx(100)
