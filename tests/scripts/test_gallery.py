"""The gallery of trained models, from official files to one page."""

import json
import re
import shutil

import pytest

from data.io.atomic_files import read_json, write_json
from data.vqa.data_folder import DataFolder
from figures.gallery.page import GENERATOR
from figures.illustrated_split import CORRECT
from scripts import gallery
from tests.figures.gallery.test_page import HOSTILE, Reader
from tests.small_models import run_here, train_small

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")


@pytest.fixture(scope="module")
def dataset(small_dataset, tmp_path_factory):
    """The small dataset with a question and answers that would like to be code."""
    root = shutil.copytree(small_dataset, tmp_path_factory.mktemp("hostile") / "shapes")
    folder = DataFolder(root)
    questions = read_json(folder.questions("val"))
    questions["questions"][0]["question"] = HOSTILE
    write_json(folder.questions("val"), questions)
    annotations = read_json(folder.annotations("val"))
    annotations["annotations"][0]["answers"][0]["answer"] = HOSTILE
    write_json(folder.annotations("val"), annotations)
    return root


@pytest.fixture(scope="module")
def run(dataset, tmp_path_factory):
    runs = tmp_path_factory.mktemp("runs")
    return train_small(dataset, runs, "multimodal", "attention=multimodal")


def make(run, *words):
    return run_here(gallery.main, f"runs={run.parent}", "attention.lam=0.001", *words)


@pytest.fixture(scope="module")
def page(run):
    code, printed, error = make(run, "checkpoints=[multimodal]", "num=1000")
    assert (code, error) == (0, "")
    assert f"open {run / 'gallery.html'} in a browser" in printed
    return (run / "gallery.html").read_text(encoding="utf-8")


def test_every_question_and_photo_is_there_and_no_text_of_a_data_file_is_code(page, dataset):
    content = read_json(DataFolder(dataset).questions("val"))["questions"]
    read = Reader(page)
    items = read.items
    assert len(read.scripts) == 1
    assert "hacked" not in read.scripts[0]
    assert set(re.findall(r"\.p(\d+)\{", page)) == {str(each["image_id"]) for each in content}
    assert set(items) == {f"q{each['question_id']}" for each in content}
    for each in content:
        item = items[f"q{each['question_id']}"]
        assert " ".join(item["text"].split()).startswith(" ".join(each["question"].split()))
        for image in item["images"]:
            assert each["question"] in (image.get("alt") or image["aria-label"])


def test_items_have_answer_type_components_correctness_and_divergence(page, dataset):
    annotations = read_json(DataFolder(dataset).annotations("val"))["annotations"]
    types = {f"q{each['question_id']}": each["answer_type"] for each in annotations}
    values = {name: json.loads(item["values"]) for name, item in Reader(page).items.items()}
    assert {name: each["type"] for name, each in values.items()} == types
    for each in values.values():
        assert each["correct0"] == ("correct" if each["accuracy0"] >= CORRECT else "wrong")
        assert each["components0"] in (1, 2, 3, 4)
    with_people = [each["human0"] for each in values.values() if "human0" in each]
    assert 0 < len(with_people) < len(values)
    assert all(0 <= each <= 1 for each in with_people)
    assert "multimodal: divergence from people, in bits</option>" in page


def test_an_earlier_gallery_is_replaced_and_nothing_else(run, tmp_path):
    words = ["checkpoints=[multimodal]", "num=2", f"output={tmp_path / 'page.html'}"]
    assert make(run, *words)[0] == 0
    first = (tmp_path / "page.html").read_bytes()
    assert make(run, *words)[0] == 0
    assert (tmp_path / "page.html").read_bytes() == first
    assert GENERATOR.encode() in first
    (tmp_path / "page.html").write_text("mine")
    code, _, error = make(run, *words)
    assert code == 2
    assert "is not a gallery" in error
    assert (tmp_path / "page.html").read_text() == "mine"


def test_a_folder_in_place_of_the_page_is_rejected_before_the_data_is_opened(run, tmp_path):
    code, _, error = make(
        run, "checkpoints=[multimodal]", f"output={tmp_path}", "data.root=nowhere"
    )
    assert code == 2
    assert f"{tmp_path} is a folder; name the file to write" in error


def test_another_seed_shows_other_questions(run, tmp_path):
    def shown(seed):
        output = tmp_path / f"{seed}.html"
        words = ["checkpoints=[multimodal]", "num=5", f"seed={seed}", f"output={output}"]
        assert make(run, *words)[0] == 0
        return list(Reader(output.read_text(encoding="utf-8")).items)

    first, again, other = (shown(seed) for seed in (1, 1, 2))
    assert len(first) == 5
    assert first == again
    assert first != other
