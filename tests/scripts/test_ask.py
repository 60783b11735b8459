"""make ask: the same answer as evaluation's, any picture, and every mistake in one sentence."""

import dataclasses
import shutil

import numpy as np
import pytest
import torch
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf
from PIL import Image, ImageDraw

from attention import Grid
from data.backbones import open_backbone
from data.manifest import Manifest
from data.pictures import read_image
from data.questions import load_questions
from data.splits import Folder
from data.store_set import open_stores
from mcan.checkpoint import load_checkpoint, save_checkpoint
from scripts import ask
from scripts.answer_sheet import make_sheet
from scripts.ask import take_literally
from scripts.asking import open_asker
from scripts.looks import look_through
from scripts.trained import load_trained
from tests.data.sample_networks import LAYOUTS, draw_state
from tests.small_models import compose, listing, run_here
from tests.small_runs import ALONE

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")

RUNTIME = OmegaConf.create({"precision": "auto"})
QUESTION = "What color is the circle?"


def draw_picture(size=(300, 200), background=(255, 255, 255, 255)):
    """What a user might draw: a red circle and a blue square."""
    picture = Image.new("RGBA", size, background)
    pen = ImageDraw.Draw(picture)
    pen.ellipse([20, 20, 80, 80], fill=(220, 30, 30, 255))
    pen.rectangle([size[0] - 90, size[1] - 90, size[0] - 30, size[1] - 30], fill=(30, 60, 220, 255))
    return picture


@pytest.fixture(scope="module")
def photo(tmp_path_factory):
    path = tmp_path_factory.mktemp("photos") / "photo.png"
    draw_picture().convert("RGB").save(path)
    return path


@pytest.fixture(scope="module")
def asker(peaky_run):
    return open_asker(load_trained(peaky_run, changed={"lam": 0.3}), None, RUNTIME)


@pytest.fixture(scope="module")
def seen(asker, photo):
    return asker.ask(read_image(photo), QUESTION)


def test_a_question_of_the_dataset_gets_the_answer_that_evaluation_gives(asker, small_dataset):
    folder, config = Folder(small_dataset), compose("figures", [])
    questions = load_questions([folder.questions("val")])
    stores = open_stores(folder.stores("val"), "mmap", None)
    looks = look_through(asker.trained, questions, stores, ALONE, config.runtime)
    for row in range(0, len(questions), 5):
        image = folder.images("val", int(questions.image_ids[row]))
        view = asker.ask(read_image(image), questions.texts[row]).choose()
        assert view.answers[0].answer == looks[row].guess.answer
        assert view.answers[0].probability == pytest.approx(looks[row].guess.probability, rel=1e-4)
        assert view.num_components == looks[row].num_components
        np.testing.assert_allclose(view.mixture.mu, looks[row].mixture.mu, atol=1e-6)
    assert len({look.num_components for look in looks}) > 1  # else this shows little


def test_another_lambda_is_what_a_model_with_that_lambda_answers(peaky_run, seen, photo):
    numbers = set()
    for lam in (0.0, 0.3, 1.0, 20.0):
        own = open_asker(load_trained(peaky_run, changed={"lam": lam}), None, RUNTIME)
        expected, view = own.ask(read_image(photo), QUESTION).choose(), seen.choose(lam)
        assert view.answers == expected.answers
        assert np.array_equal(view.mixture.sigma, expected.mixture.sigma)
        likelihoods = seen.attended.candidates.log_likelihood[0].numpy()
        lengths = -2 * likelihoods + lam * np.arange(1, 5)
        np.testing.assert_allclose(view.lengths, lengths)
        assert view.num_components == int(lengths.argmin()) + 1
        numbers.add(view.num_components)
    assert len(numbers) > 1


def test_a_given_number_of_components_is_what_the_network_answers_with_it(asker, seen, photo):
    model, words = asker.trained.model, asker.trained.words
    described = torch.from_numpy(asker.backbone.describe(read_image(photo))).half().flatten(0, 1)
    tokens = torch.tensor([words.vocabulary.encode(QUESTION)])
    grid = Grid.of([seen.size])
    for k in range(1, 5):
        with torch.inference_mode():
            logits = model(described[None], grid, tokens, num_components=k)[0]
        view = seen.choose(5.0, k)
        assert view.num_components == k
        best = logits.argsort(descending=True)[:5].tolist()
        assert [guess.answer for guess in view.answers] == [words.answers.words[n] for n in best]
        found = [guess.probability for guess in view.answers]
        np.testing.assert_allclose(found, logits.sigmoid()[best].numpy(), rtol=1e-4)


def test_lambda_and_k_change_without_another_pass_of_the_network(asker, photo):
    passes = []
    hook = asker.trained.model.lstm.register_forward_hook(lambda *_: passes.append(1))
    seen = asker.ask(read_image(photo), QUESTION)
    seen.choose(0.1)
    seen.choose(3.0)
    seen.choose(1.0, 2)
    hook.remove()
    assert len(passes) == 1


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        (lambda: draw_picture((200, 300), (0, 0, 0, 0)), (300, 200)),
        (lambda: draw_picture().convert("L"), (200, 300)),
        (lambda: draw_picture().convert("P"), (200, 300)),
        (lambda: draw_picture().convert("1"), (200, 300)),
        (lambda: draw_picture((3000, 1500)), (500, 1000)),
        (lambda: Image.new("RGB", (1, 1)), (1, 1)),
        (lambda: Image.new("I;16", (40, 30)), (30, 40)),
    ],
)
def test_a_picture_may_be_of_any_kind_and_keeps_its_aspect(asker, kind, shape, tmp_path):
    kind().save(tmp_path / "picture.png")
    seen = asker.ask(read_image(tmp_path / "picture.png"), QUESTION)
    assert seen.photo.shape == (*shape, 3)
    sheet = make_sheet(seen, seen.choose())
    assert sheet.panels[1].heat(*shape).shape == shape


def test_what_is_transparent_is_white(asker):
    clear, white = (
        asker.ask(draw_picture(background=color), QUESTION).choose()
        for color in ((0, 0, 0, 0), (255, 255, 255, 255))
    )
    assert clear.answers == white.answers


def test_discrete_attention_has_answers_and_nothing_to_choose(discrete_run, photo):
    seen = open_asker(load_trained(discrete_run), None, RUNTIME).ask(read_image(photo), QUESTION)
    view = seen.choose(3.0, 2)
    assert (seen.k_max, view.num_components, view.lengths, view.lam) == (0, 0, (), 3.0)
    assert view.cells.sum() == pytest.approx(1)
    sheet = make_sheet(seen, view)
    assert [panel.title for panel in sheet.panels] == ["image", "discrete"]


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
    assert lines[6].startswith("K* = ")
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
def test_the_figure_goes_where_it_is_told(discrete_run, photo, tmp_path, name):
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
    (override,) = OverridesParser.create().parse_overrides([take_literally(f"question={question}")])
    assert override.value() == question


def test_what_is_in_quotes_or_no_text_is_left_to_hydra():
    for word in ("question='a, b'", "output=null", "question=", "attention.lam=0.5", "--help"):
        assert take_literally(word) == word


def test_words_that_the_model_does_not_know_are_named(asker, photo):
    picture = read_image(photo)
    assert asker.ask(picture, QUESTION).notices == ()
    assert asker.ask(picture, "Is the zebra red?").notices == (
        "“zebra”: a word that the model has never read",
    )
    (notice,) = asker.ask(picture, "zebra gnu zebra").notices
    assert notice == "“zebra”, “gnu”: words that the model has never read"
    (notice,) = asker.ask(picture, "red " * 15).notices
    assert notice == "only the first 14 words of the question are read"


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
        ("whole.png", QUESTION, ["dpi=1"], "dpi is 1, expected at least 20"),
        ("whole.png", QUESTION, ["weights=r50.pth"], "backbone patch has no weights"),
        ("whole.png", QUESTION, ["attention.lam=-1"], "lam"),
        ("whole.png", QUESTION, ["attention.lambda=1"], "did you mean 'attention.lam'"),
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


def change_features(run, folder, backbone, num_features=None, **changes):
    """A copy of a checkpoint that says it was trained on other features."""
    content = load_checkpoint(run / "best.pt")
    manifest = Manifest.parse(content["manifest"], run)
    manifest = dataclasses.replace(manifest, backbone=backbone, **changes)
    content["manifest"] = manifest.dump()
    if num_features:
        content["sizes"] = {**content["sizes"], "num_features": num_features}
        hidden = content["sizes"]["hidden"]
        content["model"]["project_features.weight"] = torch.randn(hidden, num_features) / 100
    folder.mkdir()
    save_checkpoint(folder / "best.pt", content)
    return folder


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"backbone": "R-50", "resize": (600, 1000)}, "pass weights=R-50.pth"),
        ({"backbone": "X-152++"}, "backbone 'X-152++', and there is no backbone"),
        ({"backbone": "R-50", "resize": None}, "needs a resize"),
        ({"backbone": "patch", "num_features": 7}, "was trained on 7 features a cell"),
    ],
)
def test_features_that_cannot_be_computed_here_are_told(
    multimodal_run, photo, tmp_path, changes, problem
):
    changed = change_features(multimodal_run, tmp_path / "run", **changes)
    code, _, error = run(changed, photo, QUESTION)
    assert code == 2
    assert problem in error
    assert str(changed) in error
    assert len(error.splitlines()) == 1
    assert not (changed / "ask").exists()


def test_a_network_describes_the_picture_when_its_weights_are_given(
    multimodal_run, photo, tmp_path
):
    weights = tmp_path / "R-50.pth"
    torch.save({"model": draw_state(LAYOUTS["r50"])}, weights)
    backbone = open_backbone("r50", weights, resize=(64, 128))
    features = {"backbone": "R-50", "resize": (64, 128), "num_features": 2048}
    right = change_features(
        multimodal_run, tmp_path / "right", source=f"x (3 files), weights {backbone.weights}",
        **features,
    )  # fmt: skip
    seen = open_asker(load_trained(right), str(weights), RUNTIME).ask(read_image(photo), QUESTION)
    assert seen.size == backbone.choose_grid(300, 200) == (2, 3)
    other = change_features(
        multimodal_run, tmp_path / "other", source="x (3 files), weights 0123456789ab", **features
    )
    with pytest.raises(ValueError, match=r"features of other R-50 weights .*0123456789ab"):
        open_asker(load_trained(other), str(weights), RUNTIME)


def test_without_matplotlib_it_says_how_to_get_it(discrete_run, photo, monkeypatch):
    monkeypatch.setattr("scripts.gathering.importlib.util.find_spec", lambda name: None)
    code, _, error = run(discrete_run, photo, QUESTION)
    assert (code, error) == (2, "error: drawing needs matplotlib: pip install -e '.[plot]'\n")


def test_a_checkpoint_names_no_code(multimodal_run, photo, tmp_path):
    content = load_checkpoint(multimodal_run / "best.pt")
    content["attention"] = {**content["attention"], "name": "mine"}
    (tmp_path / "run").mkdir()
    save_checkpoint(tmp_path / "run" / "best.pt", content)
    code, _, error = run(tmp_path / "run", photo, QUESTION)
    assert code == 2
    assert "name the module that registers it: modules=[…]" in error
