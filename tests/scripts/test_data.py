"""The command that makes, downloads and checks datasets."""

import shlex

import pytest

from data.text.answer_list import DEFAULT_COUNTS, AnswerList
from data.vqa.layout import LAYOUTS
from scripts import data
from tests.data.io.loopback import Site, serve
from tests.data.sample_folder import add_images, fill_folder
from tests.data.vqa.test_inventory import write_stores
from tests.data.vqa.test_vqa_v2 import publish
from tests.small_models import run_here
from tests.small_runs import compose


def run(*words):
    """The command in this process: its exit code, what it printed, and its error."""
    return run_here(data.main, *words, quiet=[])


def test_vqa_v2_is_fetched_and_words_are_built(tmp_path):
    root = tmp_path / "vqa"
    with serve(Site(publish(tmp_path), ranges=False, cut_after=200, cuts=2)) as site:
        words = ["data=vqa_v2", f"data.root={root}", f"data.url={site.url}", "data.pause=0"]
        (first_code, first, _), (second_code, second, _) = run(*words), run(*words)
    assert first_code == second_code == 0
    assert "built" in first
    assert "172 + 84 + 169 GB" in first
    assert "kept" in second
    assert (root / "answers.json").is_file()
    assert not (root / "glove.840B.300d.txt").exists()


def test_word_vectors_are_fetched_when_asked_for(tmp_path):
    root = tmp_path / "vqa"
    with serve(Site(publish(tmp_path))) as site:
        words = ["data=vqa_v2", f"data.root={root}", f"data.url={site.url}", "data.glove=true"]
        code, printed, _ = run(*words, f"data.glove_url={site.url}")
    assert code == 0
    assert "glove.840B.300d.zip" in printed
    assert (root / "glove.840B.300d.txt").is_file()


def test_custom_folder_is_checked_and_the_next_step_named(tmp_path):
    folder = fill_folder(tmp_path)
    add_images(folder, "train", range(1000, 1020))
    code, shown, _ = run("data=custom", f"data.root={tmp_path}")
    assert code == 0
    assert "built 9 question words and 2 answers" in shown
    assert "make extract" in shown
    assert folder.vocabulary.is_file()


def test_a_folder_of_any_name_is_in_commands_that_the_shell_reads(tmp_path):
    root = tmp_path / "my data (1)"
    folder = fill_folder(root)
    add_images(folder, "train", range(1000, 1020))
    _, shown, _ = run("data=custom", f"data.root={root}")
    (line,) = (line for line in shown.splitlines() if "make extract IMAGES=" in line)
    words = shlex.split(line.partition("; ")[2])
    assert words[2:4] == [f"IMAGES={folder.image_folder('train')}", f"OUT={folder.store('train')}"]
    write_stores(folder)
    _, shown, _ = run("data=custom", f"data.root={root}")
    *_, arguments = shlex.split(shown.splitlines()[-1])
    words = shlex.split(arguments.removeprefix("ARGS="))  # make gives it to a shell once more
    assert words == ["experiment=photos", f"data.root={root}"]


def test_answers_of_ones_own_are_those_that_training_asks_for(tmp_path):
    folder = fill_folder(tmp_path)
    assert run("data=custom", f"data.root={tmp_path}")[0] == 0
    trained = compose(["experiment=photos", f"data.root={tmp_path}"]).data
    assert AnswerList.load(folder.answers).min_count == trained.min_answer_count
    assert trained.min_answer_count in DEFAULT_COUNTS


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["data=custom"], "data.root=…"),
        (["data=custom", "data.root={root}"], "train2014_questions.json is not valid JSON"),
        (["data.root={root}", "data.force=true"], "holds other files"),  # data=shapes
        (
            ["data=vqa_v2", "data.root={root}/v", "data.url={url}"],
            "v2_Questions_Train_mscoco.zip answered 404",
        ),
    ],
)
def test_what_is_missing_or_wrong_ends_in_one_sentence_and_code_two(tmp_path, words, sentence):
    fill_folder(tmp_path).questions("train").write_text('{"questions": [')
    with serve(Site({})) as site:
        code, _, error = run(*(word.format(root=tmp_path, url=site.url) for word in words))
    assert code == 2
    assert sentence in error
    assert "Traceback" not in error


def test_a_list_kept_from_another_threshold_is_noticed(tmp_path):
    fill_folder(tmp_path)
    words = ["data=custom", f"data.root={tmp_path}"]
    for _ in range(2):
        code, shown, _ = run(*words)
        assert code == 0
        assert "notice" not in shown
    code, shown, _ = run(*words, "data.answers_more_than=3")
    assert code == 0
    assert "answers.json was built with data.min_answer_count=3, not 4; delete it" in shown


LAYOUT = """
from data.vqa.layout import Layout, register_layout

register_layout("mine", Layout(questions="{split}/q.json", annotations="{split}/a.json"))
"""


def test_a_folder_with_file_names_of_ones_own_is_checked(tmp_path, monkeypatch):
    monkeypatch.setattr(LAYOUTS, "values", dict(LAYOUTS.values))  # other tests do not see it
    (tmp_path / "layout_of_mine.py").write_text(LAYOUT)
    monkeypatch.syspath_prepend(tmp_path)
    words = ["data=custom", f"data.root={tmp_path / 'data'}", "data.layout=mine"]
    assert run(*words, "modules=[layout_of_mine]")[0] == 2  # there is no folder yet
    fill_folder(tmp_path / "data", layout="mine")
    code, shown, _ = run(*words, "modules=[layout_of_mine]")
    assert code == 0
    assert (tmp_path / "data" / "val" / "q.json").is_file()
    assert "val: 20 questions about 20 images, annotations" in shown
