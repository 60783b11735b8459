"""make ask: what it prints and draws, and every mistake in one sentence."""

import shutil

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from PIL import Image

from mcan.checkpoint import load_checkpoint, save_checkpoint
from scripts import ask
from scripts.cli.overrides import quote_literal
from tests.small_models import change_features, draw_picture, listing, run_here

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")

QUESTION = "What color is the circle?"


@pytest.fixture(scope="module")
def photo(tmp_path_factory):
    path = tmp_path_factory.mktemp("photos") / "photo.png"
    draw_picture().convert("RGB").save(path)
    return path


def run(checkpoint, image, question, *more):
    return run_here(
        ask.main, f"checkpoint={checkpoint}", f"image={image}", f"question={question}", *more
    )


def test_the_command_prints_five_answers_and_draws_beside_the_checkpoint(
    peaky_run, photo, tmp_path
):
    checkpoint = tmp_path / "run" / "best.pt"
    checkpoint.parent.mkdir()
    shutil.copy(peaky_run / "best.pt", checkpoint)
    question = "Is the circle red, or [is] it blue?"
    words = [checkpoint.parent, photo, question, "attention.lam=0.3", "dpi=40"]
    code, printed, error = run(*words)
    assert (code, error) == (0, "")
    lines = printed.splitlines()
    assert lines[0] == question
    assert all(line.startswith("  ") and line.endswith(" %") for line in lines[1:6])
    assert lines[6].startswith("multimodal attention, K* = ")
    assert "λ = 0.3" in lines[6]
    figure = checkpoint.parent / "ask" / "photo-attention.png"
    assert f"drawn in {figure}" in lines[-1]
    assert list(listing(figure.parent)) == [figure.name]
    with Image.open(figure) as drawn:
        assert drawn.width > drawn.height
    before = figure.read_bytes()
    assert run(*words)[0] == 0
    assert figure.read_bytes() == before


@pytest.mark.parametrize("name", ["a,b.png", "figure.PDF", "name with = and [x].png"])
def test_the_figure_is_written_to_the_given_path(discrete_run, photo, tmp_path, name):
    code, printed, error = run(
        discrete_run, photo, QUESTION, f"output={tmp_path / 'new' / name}", "dpi=30"
    )
    assert (code, error) == (0, "")
    assert "discrete attention" in printed
    ((found, content),) = listing(tmp_path / "new").items()
    assert found == name
    assert content.startswith(b"%PDF" if name.endswith("PDF") else b"\x89PNG")


@pytest.mark.parametrize(
    "question",
    [
        "Is the circle red, or is it blue?",
        'What\'s the "color" of it?',
        "[Is] {it} (red)=blue?",
        "5",
        "'What color is the circle?",
        "¿De qué color es el círculo?",
    ],
)
def test_a_question_is_taken_as_it_is_typed(question):
    (override,) = OverridesParser.create().parse_overrides(
        [quote_literal(f"question={question}", ["question"])]
    )
    assert override.value() == question


def test_what_is_in_quotes_or_no_text_is_left_to_hydra():
    for word in ("question='a, b'", "output=null", "question=", "attention.lam=0.5", "--help"):
        assert quote_literal(word, ["question", "image"]) == word


@pytest.fixture(scope="module")
def bad_pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bad")
    (folder / "text.jpg").write_text("no picture")
    draw_picture().save(folder / "whole.png")
    (folder / "cut.png").write_bytes((folder / "whole.png").read_bytes()[:200])
    return folder


@pytest.mark.parametrize(
    ("image", "question", "more", "problem"),
    [
        ("none.png", QUESTION, [], "none.png does not exist; expected an image"),
        ("text.jpg", QUESTION, [], "text.jpg is not a readable image"),
        ("cut.png", QUESTION, [], "cut.png is not a readable image"),
        (".", QUESTION, [], "is not a readable image"),
        ("whole.png", "", [], "ask needs question=…"),
        ("whole.png", "  ?! ", [], "the question has no words"),
        ("whole.png", QUESTION, ["output={folder}/whole.png"], "the same file as image"),
        ("whole.png", QUESTION, ["output={folder}/a.jpg"], "expected a file named *.png or *.pdf"),
        ("whole.png", QUESTION, ["output={folder}/text.jpg/a.png"], "is a file, not a folder"),
        ("whole.png", QUESTION, ["dpi=1"], "dpi must be a whole number >= 20"),
        ("whole.png", QUESTION, ["weights=r50.pth"], "backbone patch has no weights"),
        ("whole.png", QUESTION, ["attention.lam=-1"], "lam"),
        ("whole.png", QUESTION, ["attention.lambda=1"], "attention.lambda is not an option"),
        ("whole.png", QUESTION, ["checkpoint=nothing"], "there is no checkpoint or run 'nothing'"),
    ],
)
def test_a_mistake_ends_in_one_sentence_and_leaves_nothing(
    multimodal_run, bad_pictures, tmp_path, image, question, more, problem
):
    before = listing(bad_pictures)
    more = [word.format(folder=bad_pictures) for word in more]
    if not any(word.startswith("output=") for word in more):
        more = [f"output={tmp_path / 'out' / 'a.png'}", *more]
    code, printed, error = run(multimodal_run, bad_pictures / image, question, *more)
    assert code == 2
    assert problem in error
    assert len(error.splitlines()) == 1
    assert printed == ""
    assert listing(bad_pictures) == before
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"backbone": "R-50", "resize": (600, 1000)}, "pass weights=R-50.pth"),
        ({"backbone": "X-152++"}, "backbone 'X-152++', and there is no backbone"),
        ({"backbone": "R-50", "resize": None}, "needs a resize"),
        ({"backbone": "patch", "num_features": 7}, "was trained on 7 features per cell"),
    ],
)
def test_features_that_cannot_be_computed_here_are_a_mistake(
    multimodal_run, photo, tmp_path, changes, problem
):
    changed = change_features(multimodal_run, tmp_path / "run", **changes)
    code, _, error = run(changed, photo, QUESTION)
    assert code == 2
    assert problem in error
    assert str(changed) in error
    assert len(error.splitlines()) == 1
    assert not (changed / "ask").exists()


def test_without_matplotlib_it_says_how_to_get_it(discrete_run, photo, monkeypatch):
    monkeypatch.setattr("figures.requirements.importlib.util.find_spec", lambda name: None)
    code, _, error = run(discrete_run, photo, QUESTION)
    assert code == 2
    assert error == "error: drawing needs matplotlib: .venv/bin/pip install -e '.[plot]'\n"


def test_a_checkpoint_names_no_code(multimodal_run, photo, tmp_path):
    content = load_checkpoint(multimodal_run / "best.pt")
    content["attention"] = {**content["attention"], "name": "mine"}
    (tmp_path / "run").mkdir()
    save_checkpoint(tmp_path / "run" / "best.pt", content)
    code, _, error = run(tmp_path / "run", photo, QUESTION)
    assert code == 2
    assert "name the module that registers it: modules=[…]" in error
