"""make figures: which files it writes, and every mistake in one sentence."""

import shutil

import pytest
from PIL import Image

from data.vqa.data_folder import DataFolder
from scripts import figures
from tests.small_models import listing, run_here

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")

ALL = "checkpoints=[discrete,unimodal,multimodal]"
ONE = "checkpoints=[multimodal]"


@pytest.fixture(scope="module")
def question_ids(small_dataset):
    return DataFolder(small_dataset).read_questions("val").ids.tolist()


def draw(runs, output, *words):
    return run_here(figures.main, f"runs={runs}", f"output={output}", *words)


def test_the_command_draws_heads_and_components_of_named_questions(
    runs_of_every_head, question_ids, tmp_path
):
    ids = [question_ids[3], question_ids[0]]
    output = tmp_path / "out"
    words = [ALL, "attention.lam=0.05", f"questions={ids}", "dpi=40"]
    code, printed, error = draw(runs_of_every_head, output, *words)
    assert (code, error) == (0, "")
    names = {f"{n}-{kind}.{end}" for n in ids for kind in ("heads", "components")
             for end in ("png", "pdf")}  # fmt: skip
    assert set(listing(output)) == names
    assert "8 files about 2 questions" in printed
    for number in ids:
        with Image.open(output / f"{number}-heads.png") as image:
            assert image.size[0] > 200
        assert (output / f"{number}-heads.pdf").read_bytes().startswith(b"%PDF")


def test_a_second_run_replaces_its_own_files_with_the_same_and_nothing_else(
    runs_of_every_head, tmp_path
):
    words = [ALL, "choose=differ", "num=1", "formats=[png]", "dpi=30", "components=false"]
    (tmp_path / "note.txt").write_text("mine")
    assert draw(runs_of_every_head, tmp_path, *words)[0] == 0
    first = listing(tmp_path)
    assert draw(runs_of_every_head, tmp_path, *words)[0] == 0
    assert listing(tmp_path) == first
    assert first["note.txt"] == b"mine"
    assert len(first) == 2


def test_two_models_that_select_k_get_figures_under_their_own_names(
    runs_of_every_head, question_ids, tmp_path
):
    other = tmp_path / "other"
    shutil.copytree(runs_of_every_head / "multimodal", other)
    number = question_ids[0]
    words = [f"checkpoints=[multimodal,{other}]", f"questions=[{number}]", "dpi=30"]
    assert draw(runs_of_every_head, tmp_path / "out", *words, "formats=[png]")[0] == 0
    assert set(listing(tmp_path / "out")) == {
        f"{number}-heads.png",
        f"{number}-components-multimodal.png",
        f"{number}-components-other.png",
    }


def test_figures_of_other_models_go_elsewhere(runs_of_every_head, question_ids, tmp_path):
    """Into a folder named after the models, also where a checkpoint lies alone."""
    alone = tmp_path / "model.pt"
    shutil.copy(runs_of_every_head / "multimodal" / "best.pt", alone)
    runs = shutil.copytree(runs_of_every_head, tmp_path / "runs")
    before = set(listing(runs))
    name = f"{question_ids[0]}-heads.png"
    quick = ["components=false", "formats=[png]", "dpi=30"]
    for names, choice in (
        ("unimodal", f"questions=[{question_ids[0]}]"),
        ("discrete", "num=1"),
        ("discrete,unimodal", "num=1"),
        (str(alone), "num=1"),
    ):
        words = [f"runs={runs}", f"checkpoints=[{names}]", choice]
        assert run_here(figures.main, *words, *quick)[0] == 0
    added = {*listing(runs)} - before
    assert f"figures/unimodal/chosen/{name}" in added
    assert {path.rsplit("/", 1)[0] for path in added} == {
        "figures/unimodal/chosen",
        "figures/discrete/random",
        "figures/discrete+unimodal/random",
        "figures/model/random",
    }
    assert {path.name for path in tmp_path.iterdir()} == {"runs", "model.pt"}


@pytest.mark.parametrize("names", [["discrete"], ["discrete", "multimodal"]])
def test_layers_adds_a_figure_of_words_for_every_model(
    runs_of_every_head, question_ids, tmp_path, names
):
    words = [f"checkpoints=[{','.join(names)}]", f"questions=[{question_ids[0]}]", "layers=true"]
    more = ["components=false", "formats=[png]", "dpi=30"]
    assert draw(runs_of_every_head, tmp_path, *words, *more)[0] == 0
    kinds = ["layers"] if len(names) == 1 else [f"layers-{name}" for name in names]
    assert set(listing(tmp_path)) == {f"{question_ids[0]}-{kind}.png" for kind in ["heads", *kinds]}


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "there is no model to show"),
        ([ONE, "choose=differ"], "compares models; name at least two"),
        ([ONE, "choose=best"], "choose must be one of random, differ"),
        ([ONE, "num=0"], "num must be a whole number >= 1"),
        ([ONE, "formats=[svg]"], "formats must be one of png, pdf"),
        ([ONE, "questions=[5]"], "the split has no question 5"),
        ([ONE, "formats=[]"], "formats is empty"),
        ([ONE, "questions=[ring]"], "every entry of questions must be a whole number"),
        (["checkpoints=[nothing]"], "there is no checkpoint or run 'nothing'"),
        (["checkpoints=[discrete]", "attention.lam=2"], "not an option of the discrete head"),
        ([ALL, "split=test", "choose=failures"], "needs annotations"),
        ([ALL, "split=test", "choose=human"], "no human maps"),
        ([ONE, "data.root=/nowhere"], "there is no data in /nowhere"),
        ([ONE, f"output={__file__}/figures"], "is a file, not a folder"),
    ],
)
def test_a_mistake_ends_in_one_sentence_and_leaves_nothing(
    runs_of_every_head, tmp_path, words, problem
):
    code, _, error = draw(runs_of_every_head, tmp_path / "out", *words)
    assert code == 2
    assert problem in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "out").exists()
