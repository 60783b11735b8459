"""The gallery of trained models, from official files to one page."""

import json
import re
import shutil

import pytest

from data.splits import Folder
from figures.page import MARK
from scripts import gallery
from scripts.album import RIGHT
from tests.figures.test_page import HOSTILE, Reader
from tests.small_models import run_here, train_small

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")


@pytest.fixture(scope="module")
def dataset(small_dataset, tmp_path_factory):
    """The small dataset with a question and answers that would like to be code."""
    root = tmp_path_factory.mktemp("hostile") / "shapes"
    shutil.copytree(small_dataset, root)
    for path, entries in (
        (Folder(root).questions("val"), "questions"),
        (Folder(root).annotations("val"), "annotations"),
    ):
        content = json.loads(path.read_text())
        first = content[entries][0]
        if entries == "questions":
            first["question"] = HOSTILE
        else:
            first["answers"][0]["answer"] = HOSTILE
        path.write_text(json.dumps(content))
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


def test_every_question_is_there_once_with_its_own_words(page, dataset):
    content = json.loads(Folder(dataset).questions("val").read_text())["questions"]
    cards = Reader(page).cards
    assert set(cards) == {f"q{each['question_id']}" for each in content}
    for each in content:
        card = cards[f"q{each['question_id']}"]
        assert " ".join(card["text"].split()).startswith(" ".join(each["question"].split()))
        for image in card["images"]:
            assert each["question"] in (image.get("alt") or image["aria-label"])


def test_texts_of_data_files_cannot_run(page, dataset):
    read = Reader(page)
    assert len(read.scripts) == 1
    assert "hacked" not in read.scripts[0]
    assert "<script>hacked" not in page
    assert not [a for _, a in read.elements if any(name.startswith("on") for name in a)]


def test_cards_carry_type_components_rightness_and_divergence(page, dataset):
    annotations = json.loads(Folder(dataset).annotations("val").read_text())["annotations"]
    types = {f"q{each['question_id']}": each["answer_type"] for each in annotations}
    values = {name: json.loads(card["values"]) for name, card in Reader(page).cards.items()}
    assert {name: each["type"] for name, each in values.items()} == types
    for each in values.values():
        assert each["right0"] == ("right" if each["accuracy0"] >= RIGHT else "wrong")
        assert each["components0"] in (1, 2, 3, 4)
    with_people = [each["human0"] for each in values.values() if "human0" in each]
    assert 0 < len(with_people) < len(values)
    assert all(0 <= each <= 1 for each in with_people)


def test_a_photo_is_embedded_once_for_all_its_questions(page, dataset):
    content = json.loads(Folder(dataset).questions("val").read_text())["questions"]
    photos = re.findall(r"\.p(\d+)\{", page)
    assert len(photos) == len(set(photos))
    assert set(photos) == {str(each["image_id"]) for each in content}


def test_an_earlier_gallery_is_replaced_and_nothing_else(run, tmp_path):
    words = ["checkpoints=[multimodal]", "num=2", f"output={tmp_path / 'page.html'}"]
    assert make(run, *words)[0] == 0
    first = (tmp_path / "page.html").read_bytes()
    assert make(run, *words)[0] == 0
    assert (tmp_path / "page.html").read_bytes() == first
    assert MARK.encode() in first
    (tmp_path / "page.html").write_text("mine")
    code, _, error = make(run, *words)
    assert code == 2
    assert "is no gallery" in error
    assert (tmp_path / "page.html").read_text() == "mine"


def test_another_seed_shows_other_questions(run, tmp_path):
    def shown(seed):
        output = tmp_path / f"{seed}.html"
        words = ["checkpoints=[multimodal]", "num=5", f"seed={seed}", f"output={output}"]
        assert make(run, *words)[0] == 0
        return list(Reader(output.read_text(encoding="utf-8")).cards)

    first, again, other = (shown(seed) for seed in (1, 1, 2))
    assert len(first) == 5
    assert first == again
    assert first != other
