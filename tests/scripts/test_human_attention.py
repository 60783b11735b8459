"""The comparison with people as a command: its files, any number of processes, users' mistakes."""

import csv
import json
import re
import shutil

import pytest
from PIL import Image

from data.human_attention.vqa_hat import list_mapped_questions
from data.io.atomic_files import write_json
from data.shapes.build import Sizes, build_shapes
from data.vqa.data_folder import DataFolder
from mcan.checkpoint import load_checkpoint, save_checkpoint
from mcan.evaluation.trained_model import load_trained, name_models
from scripts import human_attention
from tests.mcan.runtime.together import run_together
from tests.small_models import compose as compose_command
from tests.small_models import run_here
from tests.small_runs import ALONE, settings, train_here

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")

OPTIONS = {
    "unimodal": {"name": "unimodal", "floor": 1e-6},
    "multimodal": {"name": "multimodal", "lam": 0.0, "k_max": 3, "num_restarts": 1},
}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """`shapes` with human maps of 24 questions."""
    root = tmp_path_factory.mktemp("human") / "shapes"
    build_shapes(root, sizes=Sizes(train=12, val=6, test=2, human=24), num_workers=1)
    return root


@pytest.fixture(scope="module")
def runs(dataset, tmp_path_factory):
    """A discrete model, and the same weights under the continuous heads."""
    runs = tmp_path_factory.mktemp("runs")
    words = settings(dataset, runs, "attention=discrete", "name=discrete", "optim.epochs=1")
    train_here([word for word in words if word != "attention.num_restarts=1"])
    content = load_checkpoint(runs / "discrete" / "best.pt")
    for name, options in OPTIONS.items():
        save_checkpoint(runs / name / "best.pt", {**content, "attention": options})
    return runs


def command(*overrides):
    """The command in this process: exit code, what it printed, and its error."""
    return run_here(human_attention.main, "resamples=100", *overrides)


def compose(*overrides):
    return compose_command("human_attention", ["resamples=100", *overrides])


def name_all(runs):
    return f"checkpoints=[{runs}/discrete,{runs}/unimodal/best.pt,{runs}/multimodal]"


@pytest.fixture(scope="module")
def report(runs, tmp_path_factory):
    """What the command writes about all three models."""
    output = tmp_path_factory.mktemp("report")
    human_attention.compare_with_people(compose(name_all(runs), f"output={output}"), ALONE)
    return output


def test_the_summary_has_every_model_control_and_pair(report, dataset):
    summary = json.loads((report / "val.json").read_text())
    names = [model["name"] for model in summary["models"]]
    assert names == ["discrete", "discrete blurred", "unimodal", "multimodal"]
    assert summary["data"] == str(dataset)
    assert set(summary["controls"]) == {"uniform", "centre", "another_person"}
    assert len(summary["paired_differences"]) == 6
    assert summary["maps"] + summary["black_maps_left_out"] == 24 * 3
    assert summary["questions"] == 24
    for model in summary["models"]:
        overall = model["overall"]
        assert 0 < overall["divergence_bits"]["low"] <= overall["divergence_bits"]["mean"] < 1
        assert set(model["by_annotator"]) == {"1", "2", "3"}
        assert set(model["by_answer_type"]) <= {"yes/no", "number", "other"}
        assert sum(each["maps"] for each in model["by_answer_type"].values()) == overall["maps"]
    assert set(summary["models"][2]["by_num_components"]) == {"1"}
    assert set(summary["models"][3]["by_num_components"]) <= {"1", "2", "3"}


def test_the_table_of_maps_adds_up_to_the_summary(report):
    summary = json.loads((report / "val.json").read_text())
    with open(report / "val.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == summary["maps"] * 4
    for model in summary["models"]:
        own = [row for row in rows if row["model"] == model["name"]]
        for measure in ("divergence_bits", "divergence_nats", "distance_bits", "spearman"):
            values = [float(row[measure]) for row in own if row[measure]]
            mean = sum(values) / len(values)
            assert mean == pytest.approx(model["overall"][measure]["mean"], abs=2e-6)
    assert {row["num_components"] for row in rows if row["head"] == "discrete"} == {""}


def test_people_agree_with_people_more_than_a_fresh_model_does(report):
    summary = json.loads((report / "val.json").read_text())
    people = summary["controls"]["another_person"]
    for model in summary["models"]:
        assert people["divergence_bits"]["high"] < model["overall"]["divergence_bits"]["low"]
        assert people["spearman"]["low"] > model["overall"]["spearman"]["high"]


def compare_under(world, overrides):
    """The whole command, as one of several processes, or the sentence that it ends with."""
    try:
        return human_attention.compare_with_people(compose(*overrides), world).to_json()
    except ValueError as error:
        return str(error)


def test_two_processes_write_the_same_bytes_as_one_and_end_alike_at_a_broken_map(
    runs, copy, tmp_path
):
    jobs = [
        (size, compare_under, ((name_all(runs), f"output={tmp_path / str(size)}"),))
        for size in (1, 2)
    ]
    expected = spoil_map(copy)  # its question is read by the second process alone
    broken = (f"checkpoints=[{runs}/discrete]", f"data.root={copy.root}", f"output={tmp_path}/3")
    alone, together, ended = run_together([*jobs, (2, compare_under, (broken,))], tmp_path)
    for name in ("val.json", "val.csv"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()
    assert alone[0] == together[0] == together[1]
    assert ended[0] == ended[1]
    assert expected in ended[0]
    assert not (tmp_path / "3").exists()


def test_a_single_model_goes_beside_its_checkpoint_and_may_be_compared_again(runs):
    for _ in range(2):
        code, printed, error = command(f"checkpoints=[{runs}/multimodal]", "attention.lam=1000")
        assert (code, error) == (0, "")
    written = json.loads((runs / "multimodal" / "human_attention" / "val.json").read_text())
    assert set(written["models"][0]["by_num_components"]) == {"1"}
    assert written["runs"]["multimodal"]["lam"] == 1000
    assert "black maps left out" in printed
    assert "another question's map" in printed


def test_several_go_to_a_folder_of_their_names(runs, tmp_path):
    code, printed, error = command(
        f"checkpoints=[{runs}/discrete,{runs}/unimodal]", f"runs={tmp_path}", "attention.floor=cell"
    )
    assert (code, error) == (0, "")
    assert (tmp_path / "human_attention" / "discrete+unimodal" / "val.csv").is_file()
    assert "discrete − unimodal" in printed


def test_two_checkpoints_of_a_run_have_names_of_their_own(runs):
    models = [load_trained(runs / "discrete" / name) for name in ("best.pt", "last.pt")]
    assert name_models(models) == ["discrete-best", "discrete-last"]
    with pytest.raises(ValueError, match=r"best\.pt is named 2 times"):
        name_models([models[0], models[0]])


def test_a_model_trained_on_the_maps_questions_is_pointed_out(runs, tmp_path):
    content = load_checkpoint(runs / "unimodal" / "best.pt")
    save_checkpoint(tmp_path / "seen" / "best.pt", {**content, "train_split": "train+val"})
    code, printed, _ = command(f"checkpoints=[{tmp_path}/seen]")
    assert code == 0
    assert "seen/best.pt was trained on val" in printed


@pytest.fixture
def copy(dataset, tmp_path):
    """A copy of the data to spoil."""
    return DataFolder(shutil.copytree(dataset, tmp_path / "copy"))


def spoil_folder(folder):
    shutil.rmtree(folder.human_maps("val"))
    return "human_attention/val does not exist"


def spoil_map(folder):
    path = sorted(folder.human_maps("val").iterdir())[5]
    path.write_bytes(path.read_bytes()[:40])
    return f"{path.name} is not a readable image"


def blacken_all(folder):
    for path in folder.human_maps("val").iterdir():
        Image.new("L", (8, 8)).save(path)
    return "every map in "


def spoil_question(folder):
    Image.new("L", (8, 8), 9).save(folder.human_maps("val") / "987654321_1.png")
    return "maps of 1 questions, such as 987654321"


def spoil_v1(folder):
    folder.v1_questions("val").unlink()
    return "v1/OpenEnded_mscoco_val2014_questions.json does not exist"


def spoil_image(folder):
    """A map of a question about an image that the store does not have."""
    questions = json.loads(folder.v1_questions("val").read_text())
    looked = list_mapped_questions(folder, "val")[0].question_id
    for entry in questions["questions"]:
        if entry["question_id"] == looked:
            entry["image_id"] = 424242
    write_json(folder.v1_questions("val"), questions)
    return "1 images are not in .*val2014.h5, the first is 424242"


def spoil_store(folder):
    folder.store("val").unlink()
    return r"val2014\.h5"


SPOILERS = [
    spoil_folder, spoil_map, blacken_all, spoil_question, spoil_v1, spoil_image, spoil_store,
]  # fmt: skip


@pytest.mark.parametrize("spoil", SPOILERS)
def test_a_mistake_in_the_data_is_one_sentence_and_writes_nothing(spoil, runs, copy, tmp_path):
    output = tmp_path / "out"
    expected = spoil(copy)
    code, _, error = command(
        f"checkpoints=[{runs}/discrete]", f"data.root={copy.root}", f"output={output}"
    )
    assert code == 2
    assert len(error.splitlines()) == 1
    assert re.search(expected, error), error
    assert not output.exists()


def test_a_mistake_in_what_is_asked_is_one_sentence_and_writes_nothing(runs, tmp_path):
    output = tmp_path / "out"
    content = load_checkpoint(runs / "discrete" / "best.pt")
    wordless = {name: value for name, value in content.items() if name != "vocabulary"}
    save_checkpoint(tmp_path / "wordless.pt", wordless)
    foreign = content["manifest"].replace('"patch"', '"R-50"')
    save_checkpoint(tmp_path / "foreign.pt", {**content, "manifest": foreign})
    (tmp_path / "noise.pt").write_bytes(b"noise")
    discrete = f"checkpoints=[{runs}/discrete]"
    for overrides, expected in [
        ([], "needs checkpoints="),
        ([f"checkpoints=[{tmp_path}/none.pt]"], "there is no checkpoint"),
        ([f"checkpoints=[{tmp_path}/noise.pt]"], "noise.pt is not a valid checkpoint"),
        ([f"checkpoints=[{tmp_path}/wordless.pt]"], "wordless.pt carries no vocabulary"),
        ([f"checkpoints=[{tmp_path}/foreign.pt]"], "was trained on"),
        ([f"checkpoints=[{runs}/discrete,{runs}/discrete]"], "is named 2 times"),
        ([discrete, "attention.lam=2"], "attention.lam is not an option of the discrete head"),
        ([discrete, "blur=0"], "blur is 0"),
        ([discrete, "resamples=0"], "resamples must be a whole number >= 1"),
        ([discrete, "split=train"], "human_attention/train does not exist"),
        ([discrete, "data.root=/nowhere"], "there is no data in /nowhere"),
    ]:
        code, _, error = command(*overrides, f"output={output}")
        assert (code, len(error.splitlines())) == (2, 1), (overrides, error)
        assert expected in error
        assert not output.exists()


def test_what_is_not_its_own_is_never_overwritten(runs, tmp_path):
    discrete, other = f"checkpoints=[{runs}/discrete]", f"checkpoints=[{runs}/unimodal]"
    (tmp_path / "file").write_text("mine")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "val.json").write_text('{"mine": 1}')
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "val.csv").write_text("mine")
    assert command(other, f"output={tmp_path / 'taken'}")[0] == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for folder, expected in [
        ("file", "is a file, not a folder"),
        ("foreign", "val.json holds something else"),
        ("table", "val.csv is there without val.json"),
        ("taken", "holds the comparison of other checkpoints"),
    ]:
        code, _, error = command(discrete, f"output={tmp_path / folder}")
        assert code == 2
        assert expected in error
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
