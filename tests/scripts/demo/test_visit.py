"""Behind the page: what may be uploaded, which models there are, what a visitor is shown."""

import re
import shutil
import socket
import struct
import zlib

import numpy as np
import pytest
from omegaconf import OmegaConf
from PIL import Image

from data.splits import Folder
from scripts.asking import open_asker
from scripts.demo import __main__ as demo
from scripts.demo.port import HOST
from scripts.demo.samples import draw_samples
from scripts.demo.shelf import MOST_LOADED, Shelf, fill_shelf
from scripts.demo.uploads import MOST_PIXELS, read_upload
from scripts.demo.view import write_message
from scripts.demo.visit import BY_LAMBDA, SIDE, begin_visit
from scripts.trained import load_trained
from tests.small_models import compose, run_here
from tests.small_runs import ALONE

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")

HOSTILE = '<script>alert(1)</script> "circle" & ${1+1} {{2}}'


@pytest.fixture(scope="module")
def shelf(peaky_run, discrete_run):
    runtime = OmegaConf.create({"precision": "auto"})
    paths = {"peaky": peaky_run / "best.pt", "discrete": discrete_run / "best.pt"}
    return Shelf(paths, lambda path: open_asker(load_trained(path), None, runtime))


@pytest.fixture(scope="module")
def photo(small_dataset):
    return sorted(Folder(small_dataset).image_folder("val").iterdir())[0]


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


def test_no_other_decoder_is_started(tmp_path):
    for kind, name in (("TIFF", "a.tiff"), ("EPS", "b.png"), ("PPM", "c.jpg")):
        Image.new("RGB", (30, 20)).save(tmp_path / name, kind)
        with pytest.raises(ValueError, match=f"^{name} is not a picture that can be read"):
            read_upload(tmp_path / name)


def test_what_is_no_picture_damaged_or_too_large_is_told_by_its_name_alone(tmp_path):
    (tmp_path / "text.png").write_text("hello")
    Image.effect_noise((100, 100), 50).save(tmp_path / "cut.png")
    (tmp_path / "cut.png").write_bytes((tmp_path / "cut.png").read_bytes()[:900])
    make_png(tmp_path / "large.png", 10_000, MOST_PIXELS // 10_000 + 1)
    make_png(tmp_path / "bomb.png", 100_000, 100_000)
    for name, problem in (
        ("text.png", "is not a picture"),
        ("cut.png", "is damaged"),
        ("large.png", "has more than 50 million pixels"),
        ("bomb.png", "has more than 50 million pixels"),
    ):
        with pytest.raises(ValueError, match=f"^{name} {problem}") as caught:
            read_upload(tmp_path / name)
        assert str(tmp_path) not in str(caught.value)


def test_a_visitor_without_a_picture_or_a_question_is_told_before_a_model_is_loaded(photo):
    empty = Shelf({}, lambda path: pytest.fail("loaded"))
    with pytest.raises(ValueError, match="There is no picture yet"):
        begin_visit(empty, None, "What?", "peaky")
    for question in ("", "  ", "?!"):
        with pytest.raises(ValueError, match="There is no question yet"):
            begin_visit(empty, str(photo), question, "peaky")


def test_moving_k_and_lambda_never_runs_the_network(shelf, photo):
    visit = begin_visit(shelf, str(photo), "What color is the circle?", "peaky")
    model = visit.seen.trained.model
    hook = model.project_features.register_forward_hook(lambda *_: pytest.fail("another pass"))
    few = visit.view(BY_LAMBDA, 50.0)
    many = visit.view(BY_LAMBDA, 0.0)
    fixed = visit.view(3, 0.0)
    too_many = visit.view(9, 0.0)
    hook.remove()
    assert few.num_components == 1 < many.num_components
    assert (fixed.num_components, too_many.num_components) == (3, 4)
    assert visit.show(few) != visit.show(many)


def test_a_view_shows_every_answer_every_k_and_marks_the_one_in_use(shelf, photo):
    visit = begin_visit(shelf, str(photo), "What color is the circle?", "peaky")
    view = visit.view(2, 0.5)
    picture, answers = visit.show(view)
    assert picture.count("<ellipse") == 2 * 4  # two lines at one and two σ of two Gaussians
    assert re.findall(r"<th>([^<]*)</th><td class=\"bar\">", answers) == [
        guess.answer for guess in view.answers
    ]
    widths = [float(w) for w in re.findall(r"width:([\d.]+)%", answers)]
    np.testing.assert_allclose(widths, [100 * g.probability for g in view.answers], atol=0.01)
    assert re.findall(r"class=chosen>([^<]*)<", answers)[0] == "2"
    assert answers.count("class=chosen") == 3


def test_discrete_attention_is_shown_as_cells_and_has_no_choice(shelf, photo):
    visit = begin_visit(shelf, str(photo), "What color is the circle?", "discrete")
    picture, answers = visit.show(visit.view(3, 1.0))
    assert visit.seen.k_max == 0
    assert "<ellipse" not in picture
    assert "chosen" not in answers


def test_every_text_is_escaped(shelf, photo):
    visit = begin_visit(shelf, str(photo), HOSTILE, "peaky")
    for text in (*visit.show(visit.view(BY_LAMBDA, 0.1)), write_message(HOSTILE)):
        assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in visit.show(visit.view(1, 1.0))[0]
    assert write_message("") == ""


def test_the_figure_to_download_is_a_png_of_the_present_view(shelf, photo):
    visit = begin_visit(shelf, str(photo), "What color is the circle?", "peaky")
    one, two = (visit.draw(visit.view(k, 1.0)) for k in (1, 2))
    assert one.startswith("data:image/png;base64,iVBOR")
    assert one != two


def test_the_photo_of_the_page_is_small_whatever_was_uploaded(shelf, tmp_path):
    Image.new("RGB", (3000, 1500)).save(tmp_path / "large.jpg")
    visit = begin_visit(shelf, str(tmp_path / "large.jpg"), "What?", "peaky")
    assert visit.photo.shape == (SIDE // 2, SIDE, 3)


def test_only_the_models_asked_last_stay_loaded():
    opened = []
    names = [f"model{number}" for number in range(MOST_LOADED + 1)]
    shelf = Shelf({name: name for name in names}, lambda path: opened.append(path) or path)
    for name in [*names, names[-1], names[0]]:
        assert shelf.open(name) == name
    assert opened == [*names, names[0]]
    assert len(shelf.loaded) == MOST_LOADED


def test_without_a_name_every_run_is_offered_and_options_go_to_the_heads_that_have_them(
    multimodal_run, discrete_run, tmp_path
):
    for run in (multimodal_run, discrete_run):
        (tmp_path / run.name).mkdir()
        shutil.copy(run / "best.pt", tmp_path / run.name)
    (tmp_path / "unfinished").mkdir()
    words = [f"runs={tmp_path}", "attention.lam=0.25"]
    shelf = fill_shelf(compose("demo", words), ALONE.device)
    assert shelf.names == ["discrete", "mm"]
    assert shelf.open("mm").trained.options["lam"] == 0.25
    assert shelf.open("discrete").trained.options["name"] == "discrete"
    named = fill_shelf(compose("demo", [*words, "checkpoint=discrete"]), ALONE.device)
    assert named.names == ["discrete"]
    with pytest.raises(ValueError, match=r"attention\.lam is no option of the discrete head"):
        named.open("discrete")


def test_checkpoints_of_one_name_are_told_apart_by_their_paths(multimodal_run, tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder / "run").mkdir(parents=True)
        shutil.copy(multimodal_run / "best.pt", tmp_path / folder / "run")
    paths = [tmp_path / folder / "run" for folder in ("a", "b")]
    config = compose("demo", [f"checkpoints=[{paths[0]},{paths[1]}]"])
    assert fill_shelf(config, ALONE.device).names == [str(path / "best.pt") for path in paths]


def test_examples_are_questions_on_different_images_that_are_there(small_dataset, tmp_path):
    samples = draw_samples(small_dataset, 4, seed=1)
    assert len({sample.path for sample in samples}) == 4
    assert samples == draw_samples(small_dataset, 4, seed=1)
    assert samples != draw_samples(small_dataset, 4, seed=2)
    copy = tmp_path / "data"
    shutil.copytree(small_dataset, copy)
    (Folder(copy).image_folder("val") / samples[0].path.name).unlink()
    left = [sample.path.name for sample in draw_samples(copy, 4, seed=1)]
    assert left == [sample.path.name for sample in samples[1:]]
    shutil.rmtree(copy / "images")
    assert draw_samples(copy, 4, seed=1) == []
    assert draw_samples(tmp_path / "nowhere", 4, seed=1) == []


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["runs={folder}"], "holds no run with a best.pt: `make train` makes one"),
        (["checkpoint=nothing", "runs={folder}"], "there is no checkpoint or run 'nothing'"),
        (["upload_megabytes=0"], "upload_megabytes is 0, expected at least 1"),
        (["num_examples=-1"], "num_examples is -1, expected at least 0"),
        (["port=many"], "port must be a whole number"),
    ],
)
def test_a_mistake_ends_in_one_sentence(tmp_path, monkeypatch, words, problem):
    monkeypatch.setattr(demo, "is_installed", lambda name: True)
    code, _, error = run_here(demo.main, *[word.format(folder=tmp_path) for word in words])
    assert code == 2
    assert problem in error
    assert len(error.splitlines()) == 1


def test_a_port_that_is_taken_is_told_before_a_model_is_loaded(monkeypatch):
    monkeypatch.setattr(demo, "is_installed", lambda name: True)
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
    assert (code, error) == (2, "error: the page needs gradio: pip install -e '.[demo]'\n")
