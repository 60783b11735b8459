"""The comparison with people as a command: its files, and mistakes in the data."""

import csv
import json
import re
import shutil

import pytest
from PIL import Image

from data.human_attention.vqa_hat import list_mapped_questions
from data.io.atomic_files import write_json
from data.vqa.data_folder import DataFolder
from mcan.evaluation.trained_model import label_models, load_trained, name_models
from scripts import human_attention
from tests.small_models import copy_checkpoint, listing, read_error, run_here

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")


@pytest.fixture(scope="module")
def runs(runs_of_every_head, tmp_path_factory):
    """A model under every head, in a folder to write in."""
    return shutil.copytree(runs_of_every_head, tmp_path_factory.mktemp("human") / "runs")


def command(*overrides):
    """The command in this process: exit code, what it printed, and its error."""
    return run_here(human_attention.main, "resamples=100", *overrides)


@pytest.fixture(scope="module")
def report(runs, tmp_path_factory):
    """What the command writes about all three models."""
    output = tmp_path_factory.mktemp("report")
    models = f"checkpoints=[{runs}/discrete,{runs}/unimodal/best.pt,{runs}/multimodal]"
    code, _, error = command(models, f"output={output}")
    assert (code, error) == (0, "")
    return output


def test_the_summary_has_every_model_control_and_pair(report, small_dataset):
    summary = json.loads((report / "val.json").read_text())
    names = [model["name"] for model in summary["models"]]
    assert names == ["discrete", "discrete blurred", "unimodal", "multimodal"]
    assert summary["data"] == str(small_dataset)
    assert set(summary["controls"]) == {"uniform", "centre", "another_person"}
    assert len(summary["paired_differences"]) == 6
    assert summary["maps"] + summary["black_maps_left_out"] == 12 * 3
    assert summary["questions"] == 12
    for model in summary["models"]:
        overall = model["overall"]
        assert 0 < overall["divergence_bits"]["low"] <= overall["divergence_bits"]["mean"] < 1
        assert set(model["by_annotator"]) == {"1", "2", "3"}
        assert set(model["by_answer_type"]) <= {"yes/no", "number", "other"}
        assert sum(each["maps"] for each in model["by_answer_type"].values()) == overall["maps"]
    assert set(summary["models"][2]["by_num_components"]) == {"1"}
    assert set(summary["models"][3]["by_num_components"]) <= {"1", "2", "3", "4"}


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


def test_a_row_names_the_head_where_its_normaliser_or_density_is_changed(runs, tmp_path):
    words = ["attention.normaliser=sparsemax", "attention.density=paraboloid"]
    code, printed, error = command(
        f"checkpoints=[{runs}/discrete,{runs}/unimodal]", f"output={tmp_path}", *words
    )
    assert (code, error) == (0, "")
    written = json.loads((tmp_path / "val.json").read_text())
    one, two = "discrete (discrete, sparsemax)", "unimodal (unimodal, sparsemax, paraboloid)"
    assert [each["name"] for each in written["models"]] == [one, f"{one} blurred", two]
    assert list(written["runs"]) == [one, two]
    assert f"{one} − {two}" in printed


def test_a_run_of_a_variant_is_called_by_its_name_until_its_head_is_changed(runs, tmp_path):
    options = {**load_trained(runs / "unimodal").options, "normaliser": "sparsemax"}
    sparse = copy_checkpoint(
        runs / "unimodal" / "best.pt", tmp_path / "s" / "best.pt", attention=options
    )
    for changed, name in ({}, "s"), ({"normaliser": "softmax"}, "s (unimodal)"):
        assert label_models([load_trained(sparse, changed=changed)]) == [name]


def test_two_checkpoints_of_a_run_have_names_of_their_own(multimodal_run):
    models = [load_trained(multimodal_run / name) for name in ("best.pt", "last.pt")]
    assert name_models(models) == ["mm-best", "mm-last"]
    with pytest.raises(ValueError, match=r"best\.pt is named 2 times"):
        name_models([models[0], models[0]])


def test_a_model_trained_on_the_maps_questions_is_pointed_out(runs, tmp_path):
    seen = tmp_path / "seen" / "best.pt"
    copy_checkpoint(runs / "unimodal" / "best.pt", seen, train_split="train+val")
    code, printed, _ = command(f"checkpoints=[{tmp_path}/seen]")
    assert code == 0
    assert "seen/best.pt was trained on val" in printed


@pytest.fixture
def copy(small_dataset, tmp_path):
    """A copy of the data to spoil."""
    return DataFolder(shutil.copytree(small_dataset, tmp_path / "copy"))


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


def remove(find, named):
    """Rename a file or folder of the data."""

    def spoil(folder):
        find(folder).rename(folder.root / "elsewhere")
        return named

    return spoil


def spoil_image(folder):
    """A map of a question about an image that the store does not have."""
    questions = json.loads(folder.v1_questions("val").read_text())
    looked = list_mapped_questions(folder, "val")[0].question_id
    for entry in questions["questions"]:
        if entry["question_id"] == looked:
            entry["image_id"] = 424242
    write_json(folder.v1_questions("val"), questions)
    return "1 images are not in .*val2014.h5, the first is 424242"


SPOILERS = [
    spoil_map,
    blacken_all,
    spoil_question,
    spoil_image,
    remove(lambda folder: folder.human_maps("val"), "human_attention/val does not exist"),
    remove(lambda folder: folder.v1_questions("val"), "v1/OpenEnded.*_questions.json does not"),
    remove(lambda folder: folder.store("val"), r"val2014\.h5"),
]


@pytest.mark.parametrize("spoil", SPOILERS)
def test_a_mistake_in_the_data_is_one_sentence_and_writes_nothing(spoil, runs, copy, tmp_path):
    output = tmp_path / "out"
    expected = spoil(copy)
    words = f"checkpoints=[{runs}/discrete]", f"data.root={copy.root}", f"output={output}"
    error = read_error(human_attention.main, *words)
    assert re.search(expected, error), error
    assert not output.exists()


def test_one_split_is_asked_for_before_a_model_is_loaded():
    error = read_error(human_attention.main, "checkpoints=[nothing]", "split=train+val")
    assert "split is train+val, but people's maps are of one split; name one" in error


def test_what_is_not_its_own_is_never_overwritten(runs, tmp_path):
    discrete, other = f"checkpoints=[{runs}/discrete]", f"checkpoints=[{runs}/unimodal]"
    (tmp_path / "file").write_text("mine")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "val.json").write_text('{"mine": 1}')
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "val.csv").write_text("mine")
    assert command(other, f"output={tmp_path / 'taken'}")[0] == 0
    before = listing(tmp_path)
    for folder, expected in [
        ("file", "is a file, not a folder"),
        ("foreign", "val.json holds something else"),
        ("table", "val.csv is there without val.json"),
        ("taken", "holds the comparison of other checkpoints"),
    ]:
        error = read_error(human_attention.main, discrete, f"output={tmp_path / folder}")
        assert expected in error
    assert listing(tmp_path) == before
