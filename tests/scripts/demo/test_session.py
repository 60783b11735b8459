"""Behind the page: uploads, the list of models, and what a visitor is shown."""

import base64
import io
import re
import shutil
import socket
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from data.vqa.data_folder import DataFolder
from scripts.demo import __main__ as demo
from scripts.demo.answer_html import write_message
from scripts.demo.examples import Example, draw_examples
from scripts.demo.model_list import MOST_LOADED, ModelList, find_checkpoints
from scripts.demo.port import HOST
from scripts.demo.session import BY_LAMBDA, PAGE_SIDE, start_session
from scripts.demo.uploads import MOST_PIXELS, read_upload
from tests.small_models import run_here
from tests.small_runs import ALONE

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")

QUESTION = "What color is the circle?"
HOSTILE = '<script>alert(1)</script> "circle" & ${1+1} {{2}}'


@pytest.fixture(scope="module")
def models(peaky_run, discrete_run):
    paths = {"peaky": peaky_run / "best.pt", "discrete": discrete_run / "best.pt"}
    return ModelList(paths, ALONE.device, changed={})


@pytest.fixture(scope="module")
def photo(small_dataset):
    return str(min(DataFolder(small_dataset).image_folder("val").iterdir()))


@pytest.fixture(scope="module")
def session(models, photo):
    return start_session(models, photo, QUESTION, "peaky")


def make_png(path, width, height):
    """A PNG that says how large it is and holds almost nothing."""

    def chunk(kind, body):
        checksum = struct.pack(">I", zlib.crc32(kind + body))
        return struct.pack(">I", len(body)) + kind + body + checksum

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(b"\0")), chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP"])
def test_common_kinds_of_pictures_may_be_uploaded(tmp_path, kind):
    path = tmp_path / f"picture.{kind.lower()}"
    Image.new("RGB", (30, 20), (200, 10, 10)).save(path, kind)
    assert read_upload(path).size == (30, 20)


def test_an_upload_that_is_not_decoded_is_named_without_its_folder(tmp_path):
    for kind, name in (("TIFF", "a.tiff"), ("EPS", "b.png"), ("PPM", "c.jpg")):
        Image.new("RGB", (30, 20)).save(tmp_path / name, kind)
    (tmp_path / "text.png").write_text("hello")
    Image.effect_noise((100, 100), 50).save(tmp_path / "cut.png")
    (tmp_path / "cut.png").write_bytes((tmp_path / "cut.png").read_bytes()[:900])
    make_png(tmp_path / "large.png", 10_000, MOST_PIXELS // 10_000 + 1)
    make_png(tmp_path / "bomb.png", 100_000, 100_000)
    unreadable = ("a.tiff", "b.png", "c.jpg", "text.png")
    problems = dict.fromkeys(unreadable, "is not an image that can be read")
    problems |= dict.fromkeys(("large.png", "bomb.png"), "has more than 50 million pixels")
    for name, problem in {**problems, "cut.png": "is damaged"}.items():
        with pytest.raises(ValueError, match=f"^{name} {problem}") as caught:
            read_upload(tmp_path / name)
        assert str(tmp_path) not in str(caught.value)


def test_a_missing_picture_or_question_is_reported_before_a_model_is_loaded(photo):
    empty = ModelList({}, ALONE.device, changed={})
    with pytest.raises(ValueError, match="There is no image yet"):
        start_session(empty, None, "What?", "peaky")
    for question in ("", "  ", "?!"):
        with pytest.raises(ValueError, match="There is no question yet"):
            start_session(empty, photo, question, "peaky")


def test_a_network_whose_answers_are_nan_is_named_when_it_is_asked(peaky_run, photo):
    models = ModelList({"peaky": peaky_run / "best.pt"}, ALONE.device, changed={})
    models.get("peaky").trained.model.classify.bias.data.fill_(np.nan)
    with pytest.raises(ValueError, match="are NaN"):
        start_session(models, photo, QUESTION, "peaky")


def test_another_k_or_lambda_needs_no_forward_pass(session):
    model = session.forward.trained.model
    hook = model.project_features.register_forward_hook(lambda *_: pytest.fail("another pass"))
    few, many = session.answer(BY_LAMBDA, 50.0), session.answer(BY_LAMBDA, 0.0)
    fixed, too_many = session.answer(3, 0.0), session.answer(9, 0.0)
    hook.remove()
    assert few.num_components == 1 < many.num_components
    assert (fixed.num_components, too_many.num_components) == (3, 4)
    assert session.show(few) != session.show(many)


def test_every_answer_and_every_k_is_shown_and_the_k_in_use_marked(session):
    answer = session.answer(2, 0.5)
    picture, shown = session.show(answer)
    assert picture.count("<ellipse") == 2 * 4  # two lines at one and two σ of two Gaussians
    assert re.findall(r"<th>([^<]*)</th><td class=\"bar\">", shown) == [
        prediction.answer for prediction in answer.predictions
    ]
    widths = [float(w) for w in re.findall(r"width:([\d.]+)%", shown)]
    np.testing.assert_allclose(widths, [100 * p.probability for p in answer.predictions], atol=0.01)
    assert re.findall(r"class=selected>([^<]*)<", shown)[0] == "2"
    assert shown.count("class=selected") == 3


def test_discrete_attention_is_shown_as_cells_and_has_no_choice(models, photo):
    session = start_session(models, photo, QUESTION, "discrete")
    picture, answers = session.show(session.answer(3, 1.0))
    assert session.forward.k_max == 0
    assert "<ellipse" not in picture
    assert "selected" not in answers


def test_a_sparse_variant_is_named_and_drawn_to_its_edge(peaky_run, discrete_run, photo):
    paths = {"peaky": peaky_run / "best.pt", "discrete": discrete_run / "best.pt"}
    changed = {"density": "paraboloid", "normaliser": "sparsemax"}
    models = ModelList(paths, ALONE.device, changed=changed)
    session = start_session(models, photo, QUESTION, "peaky")
    picture, _ = session.show(session.answer(2, 0.5))
    assert "multimodal, sparsemax, paraboloid, K = 2" in picture
    assert picture.count("<ellipse") == 2 * 2  # one line for each component, with a dark edge
    assert "log-likelihood of the Gaussians" in session.show(session.answer(BY_LAMBDA, 0.5))[1]
    session = start_session(models, photo, QUESTION, "discrete")
    picture, _ = session.show(session.answer(BY_LAMBDA, 0.0))
    assert "discrete, sparsemax" in picture
    cells = session.forward.weights
    assert 0 < (cells == 0).mean() < 1
    content = base64.b64decode(re.search(r"data:image/jpeg;base64,([^\"]*)", picture)[1])
    drawn = np.asarray(Image.open(io.BytesIO(content))).astype(int)
    sides = drawn.shape[0] / cells.shape[0], drawn.shape[1] / cells.shape[1]
    for row, column in np.argwhere(cells == 0):
        centre = drawn[int((row + 0.5) * sides[0]), int((column + 0.5) * sides[1])]
        assert np.ptp(centre) <= 8  # grey, but for what JPEG makes of it


def test_every_text_is_escaped(models, photo):
    session = start_session(models, photo, HOSTILE, "peaky")
    for text in (*session.show(session.answer(BY_LAMBDA, 0.1)), write_message(HOSTILE)):
        assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in session.show(session.answer(1, 1.0))[0]
    assert write_message("") == ""


def test_the_figure_to_download_is_a_png_of_the_present_answer(session):
    one, two = (session.draw(session.answer(k, 1.0)) for k in (1, 2))
    assert one.startswith("data:image/png;base64,iVBOR")
    assert one != two


def test_the_photo_of_the_page_is_small_whatever_was_uploaded(models, tmp_path):
    Image.new("RGB", (3000, 1500)).save(tmp_path / "large.jpg")
    session = start_session(models, str(tmp_path / "large.jpg"), "What?", "peaky")
    assert session.page_photo.shape == (PAGE_SIDE // 2, PAGE_SIDE, 3)


def test_only_the_models_used_last_stay_loaded(monkeypatch):
    loaded = []
    monkeypatch.setattr(ModelList, "load", lambda self, path: loaded.append(path) or path)
    names = [f"model{number}" for number in range(MOST_LOADED + 1)]
    models = ModelList({name: name for name in names}, ALONE.device, changed={})
    for name in [*names, names[-1], names[0]]:
        assert models.get(name) == name
    assert loaded == [*names, names[0]]
    assert models.load_once.cache_info().currsize == MOST_LOADED


def test_without_a_name_every_run_is_offered_and_options_go_to_the_heads_that_have_them(
    multimodal_run, discrete_run, tmp_path
):
    for run in (multimodal_run, discrete_run):
        (tmp_path / run.name).mkdir()
        shutil.copy(run / "best.pt", tmp_path / run.name)
    (tmp_path / "unfinished").mkdir()
    models = ModelList(find_checkpoints([], tmp_path), ALONE.device, changed={"lam": 0.25})
    assert models.names == ["discrete", "mm"]
    assert models.get("mm").trained.options["lam"] == 0.25
    assert models.get("discrete").trained.options["name"] == "discrete"
    named = find_checkpoints(["discrete"], tmp_path)
    assert list(named) == ["discrete"]
    with pytest.raises(ValueError, match=r"attention\.lam is not an option of the discrete head"):
        ModelList(named, ALONE.device, changed={"lam": 0.25}).get("discrete")


def test_the_page_opens_with_the_first_run_that_can_be_loaded_and_names_those_before_it(
    multimodal_run, discrete_run, tmp_path, capsys
):
    for name, content in {
        "a": b"broken",
        "b": (discrete_run / "best.pt").read_bytes(),
        "c": (multimodal_run / "best.pt").read_bytes(),
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "best.pt").write_bytes(content)
    models = ModelList(find_checkpoints([], tmp_path), ALONE.device, changed={"lam": 0.25})
    assert demo.open_first(models).head_name == "discrete"
    assert models.names == ["b", "c"]
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("not offered: ")
    assert str(tmp_path / "a" / "best.pt") in line
    for name in ("b", "c"):
        (tmp_path / name / "best.pt").write_bytes(b"broken")
    models = ModelList(find_checkpoints([], tmp_path), ALONE.device, changed={})
    with pytest.raises(ValueError, match="none of the runs can be loaded"):
        demo.open_first(models)


def test_checkpoints_of_one_name_are_listed_by_their_paths(multimodal_run, tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder / "run").mkdir(parents=True)
        shutil.copy(multimodal_run / "best.pt", tmp_path / folder / "run")
    paths = [str(tmp_path / folder / "run" / "best.pt") for folder in ("a", "b")]
    assert list(find_checkpoints(paths, tmp_path)) == paths


def test_examples_are_questions_on_different_images_that_are_there(small_dataset, tmp_path):
    def draw(root, seed=1):
        output = tmp_path / "examples"
        shutil.rmtree(output, ignore_errors=True)
        return draw_examples(DataFolder(root), 4, seed, output)

    examples = draw(small_dataset)
    assert len({example.path for example in examples}) == 4
    assert all(example.path.is_file() for example in examples)
    assert examples == draw(small_dataset) != draw(small_dataset, seed=2)
    copy = tmp_path / "data"
    shutil.copytree(small_dataset, copy)
    (DataFolder(copy).image_folder("val") / examples[0].path.name).unlink()
    assert draw(copy) == examples[1:]
    shutil.rmtree(copy / "images")
    assert draw(copy) == draw(tmp_path / "nowhere") == []


@pytest.fixture
def with_gradio(monkeypatch):
    monkeypatch.setattr(demo, "is_installed", lambda name: True)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["runs={folder}", "port=0"], "holds no run with a best.pt: `make train` makes one"),
        (
            ["checkpoint=nothing", "runs={folder}", "port=0"],
            "there is no checkpoint or run 'nothing'",
        ),
        (["upload_megabytes=0"], "upload_megabytes must be a whole number >= 1"),
        (["num_examples=-1"], "num_examples must be a whole number >= 0"),
        (["port=many"], "port must be a whole number"),
    ],
)
def test_a_mistake_ends_in_one_sentence(tmp_path, with_gradio, words, problem):
    code, _, error = run_here(demo.main, *[word.format(folder=tmp_path) for word in words])
    assert code == 2
    assert problem in error
    assert len(error.splitlines()) == 1


def test_a_port_that_is_taken_is_reported_before_a_model_is_loaded(with_gradio):
    with socket.socket() as other:
        other.bind((HOST, 0))
        other.listen()
        number = other.getsockname()[1]
        for port, reason in ((number, "Address already in use"), (70_000, "must be 0-65535")):
            code, _, error = run_here(demo.main, f"port={port}", "checkpoint=nothing")
            assert code == 2
            assert f"error: port {port} cannot be used: " in error
            assert reason in error


def test_without_gradio_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(demo, "is_installed", lambda name: False)
    code, _, error = run_here(demo.main)
    assert code == 2
    assert error == "error: the page needs gradio: .venv/bin/pip install -e '.[demo]'\n"


def test_the_question_to_try_is_one_about_the_data(models, photo):
    page = pytest.importorskip("scripts.demo.page")
    examples = [Example(Path(photo), "Is the cat asleep?")]
    assert page.Page(models, examples).question.placeholder == "Is the cat asleep?"
    assert page.Page(models, []).question.placeholder
