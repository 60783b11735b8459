"""Figures of trained models: what is chosen, what is drawn, where it goes, and what is refused."""

import shutil

import numpy as np
import pytest
from omegaconf import OmegaConf
from PIL import Image
from scipy.spatial.distance import jensenshannon

from attention import Grid
from data.accuracy import score_answer
from data.human_attention import average_area, read_map
from data.questions import load_annotations
from data.splits import Folder
from mcan.checkpoint import load_checkpoint, save_checkpoint
from mcan.precision import choose_dtype
from mcan.prediction import predict
from scripts import figures
from scripts.album import open_album
from scripts.choice import draw_rows, mean_divergence, rank_differing, rank_failures
from scripts.examples import draw_examples
from scripts.gathering import find_run
from scripts.looks import Guess, Look, look_through
from scripts.sheets import compare_components, compare_heads, count_answers, show_percent
from scripts.trained import load_trained
from tests.small_models import compose, listing, run_here, sharpen, train_small
from tests.small_runs import ALONE

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")

LAM = "attention.lam=0.05"


@pytest.fixture(scope="module")
def runs(small_dataset, tmp_path_factory):
    """One trained network under all three heads: runs/multimodal, runs/unimodal, runs/discrete."""
    folder = tmp_path_factory.mktemp("runs")
    trained = train_small(small_dataset, folder, "plain", "attention=multimodal")
    sharpen(trained, "multimodal", factor=20.0)
    for head in ("unimodal", "discrete"):
        content = load_checkpoint(folder / "multimodal/best.pt")
        options = compose("train", [f"attention={head}"]).attention
        content["attention"] = OmegaConf.to_container(options)
        (folder / head).mkdir()
        save_checkpoint(folder / head / "best.pt", content)
    shutil.rmtree(trained)
    return folder


@pytest.fixture(scope="module")
def config(runs):
    return compose("figures", [f"runs={runs}"])


@pytest.fixture(scope="module")
def models(runs):
    changed = {"lam": 0.05}
    return [
        load_trained(runs / "discrete"),
        load_trained(runs / "unimodal"),
        load_trained(runs / "multimodal", changed=changed),
    ]


@pytest.fixture(scope="module")
def album(small_dataset, models, config):
    return open_album(small_dataset, "val", models, config.runtime)


@pytest.fixture(scope="module")
def looks(models, album, config):
    """Every model's looks at all questions."""
    return [
        look_through(model, album.questions, album.stores, ALONE, config.runtime)
        for model in models
    ]


def draw(runs, output, *words):
    return run_here(figures.main, f"runs={runs}", f"output={output}", *words)


ALL = "checkpoints=[discrete,unimodal,multimodal]"


def test_the_answers_and_components_are_those_that_validation_predicts(
    models, album, looks, config
):
    from data.examples import build_examples
    from scripts.dataset import Split
    from scripts.validation import iterate_split

    dtype = choose_dtype("float32", ALONE.device)
    for model, seen in zip(models, looks, strict=True):
        words = model.words
        examples = build_examples(album.questions, None, words.vocabulary, words.answers)
        loader = Split(examples, album.stores).loader(words, config.runtime, False, True)
        batches = iterate_split(loader, 128, "none", ALONE)
        expected = predict(model.model, batches, ALONE, dtype)
        order = np.argsort([look.question_id for look in seen])
        found = [seen[n] for n in order]
        assert [look.question_id for look in found] == expected.question_ids.tolist()
        answers = [words.answers.words[n] for n in expected.answers.tolist()]
        assert [look.guess.answer for look in found] == answers
        assert [look.num_components for look in found] == expected.num_components.tolist()


def test_candidates_are_the_heads_own_and_the_least_description_is_chosen(models, album, looks):
    model = models[2]
    numbers = set()
    for look in looks[2]:
        lengths = [candidate.description_length for candidate in look.candidates]
        likelihoods = [candidate.log_likelihood for candidate in look.candidates]
        assert len(look.candidates) == model.options["k_max"]
        for k, (length, likelihood) in enumerate(zip(lengths, likelihoods, strict=True), 1):
            assert length == pytest.approx(-2 * likelihood + 0.05 * k)
            assert len(look.candidates[k - 1].mixture.pi) == k
        assert look.num_components == int(np.argmin(lengths)) + 1
        chosen = look.candidates[look.num_components - 1]
        assert np.array_equal(chosen.mixture.mu, look.mixture.mu)
        assert chosen.guess == look.guess
        numbers.add(look.num_components)
    assert len(numbers) > 1  # else the test shows little


def test_cells_are_the_weights_or_the_mass_of_the_density(looks, album):
    for discrete, unimodal in zip(looks[0][:5], looks[1][:5], strict=True):
        height, width = unimodal.cells.shape
        assert discrete.cells.sum() == pytest.approx(1)
        fine = unimodal.mixture.at_pixels(height * 60, width * 60)
        mass = fine.reshape(height, 60, width, 60).mean((1, 3))
        np.testing.assert_allclose(unimodal.cells, mass / mass.sum(), atol=2e-3)
        positions = Grid.of([(height, width)]).positions[0].numpy()
        mean = discrete.cells.ravel() @ positions  # the same network: its moments
        np.testing.assert_allclose(unimodal.mixture.mu[0], mean, atol=1e-6)


def test_divergence_from_people_is_scipys_on_average_over_their_maps(album, looks):
    number = next(n for n, look in enumerate(looks[0]) if look.question_id in album.looked)
    look = looks[0][number]
    expected = []
    for path in album.looked[look.question_id].maps:
        cells = average_area(read_map(path), *look.cells.shape).ravel()
        if cells.any():
            expected.append(jensenshannon(cells, look.cells.ravel(), base=2) ** 2)
    assert album.divergence(look) == pytest.approx(np.mean(expected))


def test_people_looked_at_the_question_with_the_same_image_and_words(album, small_dataset):
    assert album.looked
    texts = dict(zip(album.questions.ids.tolist(), album.questions.texts, strict=True))
    images = dict(
        zip(album.questions.ids.tolist(), album.questions.image_ids.tolist(), strict=True)
    )
    for number, looked in album.looked.items():
        assert (looked.text, looked.image_id) == (texts[number], images[number])
        assert looked.question_id != number  # VQA v1 counts in its own way


def test_a_figure_tells_the_answer_its_probability_accuracy_and_what_people_said(
    album, looks, small_dataset, config
):
    annotations = {
        each.question_id: each
        for each in load_annotations([Folder(small_dataset).annotations("val")])
    }
    number = next(n for n, look in enumerate(looks[0]) if look.question_id in album.looked)
    of_question = [each[number] for each in looks]
    sheet = compare_heads(album, ["a", "b", "c"], of_question, figures_style())
    titles = [panel.title for panel in sheet.panels]
    assert titles == ["image", "a", "b", f"c, K* = {of_question[2].num_components}", "human"]
    annotation = annotations[of_question[0].question_id]
    for look, panel in zip(of_question, sheet.panels[1:4], strict=True):
        accuracy = score_answer(look.guess.answer, annotation.answers)
        assert panel.notes == (
            f"{look.guess.answer}, {show_percent(look.guess.probability)}",
            f"accuracy {100 * accuracy:.0f} %",
            f"JS divergence {album.divergence(look):.2f}",
        )
    counts = {answer: annotation.answers.count(answer) for answer in annotation.answers}
    assert all(f"{answer} ({count})" in sheet.caption[0] for answer, count in counts.items())
    assert np.array_equal(sheet.photo, album.photo(annotation.image_id))


def figures_style():
    from scripts.sheets import Style

    return Style()


def test_the_chosen_number_of_components_is_marked_and_no_other(album, models, looks):
    look = looks[2][0]
    sheet = compare_components(album, models[2], look)
    marked = [panel.title for panel in sheet.panels if panel.is_marked]
    assert marked == [f"K* = {look.num_components}"]
    assert [panel.title[-1] for panel in sheet.panels[1:]] == ["1", "2", "3", "4"]
    assert "0.05 · k" in sheet.caption[1]


def test_random_questions_depend_on_the_seed_alone_and_are_of_different_images():
    image_ids = np.repeat(np.arange(40), 5)
    first, again, other = (draw_rows(image_ids, 30, seed) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert len(np.unique(image_ids[first])) == 30
    assert len(np.unique(draw_rows(image_ids, 200, 3))) == 200
    assert np.array_equal(draw_rows(image_ids, 60, 1)[:30], first)


def make_look(number, cells, answer="yes", probability=0.5):
    return Look(number, Guess(answer, probability), np.array([cells], dtype=float), None)


def test_questions_where_models_differ_most_come_first():
    near, far = [[0.5, 0.5], [0.5, 0.5], [0.4, 0.6]], [[1, 0], [0, 1], [0.5, 0.5]]
    looks = [
        [make_look(1, near[m]), make_look(2, far[m]), make_look(3, [0.5, 0.5])] for m in range(3)
    ]
    assert rank_differing(looks).tolist() == [1, 0, 2]
    pairs = [(far[0], far[1]), (far[0], far[2]), (far[1], far[2])]
    expected = np.mean([jensenshannon(*pair, base=2) ** 2 for pair in pairs])
    assert mean_divergence([each[1] for each in looks]) == pytest.approx(expected)


def test_failures_are_questions_that_one_model_gets_wrong_and_another_right(album):
    ids = album.questions.ids[:4].tolist()
    right = [album.annotations[n].multiple_choice_answer for n in ids]
    cells = [0.5, 0.5]
    good = [make_look(n, cells, answer) for n, answer in zip(ids, right, strict=True)]
    bad = [
        make_look(ids[0], cells, right[0]),
        make_look(ids[1], cells, "no such answer", 0.3),
        make_look(ids[2], cells, "no such answer", 0.9),
        make_look(ids[3], cells, right[3]),
    ]
    assert rank_failures(album, [good, bad], failing=1).tolist() == [2, 1]
    assert rank_failures(album, [good, bad], failing=0).tolist() == []


def test_the_command_draws_heads_and_components_of_named_questions(runs, album, tmp_path):
    ids = album.questions.ids[[3, 0]].tolist()
    output = tmp_path / "out"
    code, printed, error = draw(runs, output, ALL, LAM, f"questions={ids}", "dpi=40")
    assert (code, error) == (0, "")
    names = {f"{n}-{kind}.{end}" for n in ids for kind in ("heads", "components")
             for end in ("png", "pdf")}  # fmt: skip
    assert set(listing(output)) == names
    assert "8 files about 2 questions" in printed
    for number in ids:
        with Image.open(output / f"{number}-heads.png") as image:
            assert image.size[0] > 200
        assert (output / f"{number}-heads.pdf").read_bytes().startswith(b"%PDF")


def test_a_second_run_replaces_its_own_files_with_the_same_and_nothing_else(runs, tmp_path):
    words = [ALL, "choose=differ", "num=1", "formats=[png]", "dpi=30", "components=false"]
    (tmp_path / "note.txt").write_text("mine")
    assert draw(runs, tmp_path, *words)[0] == 0
    first = listing(tmp_path)
    assert draw(runs, tmp_path, *words)[0] == 0
    assert listing(tmp_path) == first
    assert first["note.txt"] == b"mine"
    assert len(first) == 2


def test_two_models_that_choose_get_figures_under_their_own_names(runs, album, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(runs / "multimodal", other)
    number = int(album.questions.ids[0])
    words = [f"checkpoints=[multimodal,{other}]", f"questions=[{number}]", "dpi=30"]
    assert draw(runs, tmp_path / "out", *words, "formats=[png]")[0] == 0
    assert set(listing(tmp_path / "out")) == {
        f"{number}-heads.png",
        f"{number}-components-multimodal.png",
        f"{number}-components-other.png",
    }


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "there is no model to look through"),
        (["checkpoints=[multimodal]", "choose=differ"], "compares models; name at least two"),
        (["checkpoints=[multimodal]", "choose=best"], "choose must be one of random, differ"),
        (["checkpoints=[multimodal]", "num=0"], "num is 0, expected at least 1"),
        (["checkpoints=[multimodal]", "formats=[svg]"], "formats must be"),
        (["checkpoints=[multimodal]", "questions=[5]"], "the split has no question 5"),
        (["checkpoints=[multimodal]", "questions=[ring]"], "list of question ids"),
        (["checkpoints=[nothing]"], "there is no checkpoint or run 'nothing'"),
        (["checkpoints=[discrete]", "attention.lam=2"], "no option of any head"),
        ([ALL, "split=test", "choose=failures"], "needs annotations"),
        ([ALL, "split=test", "choose=human"], "no human maps"),
        (["checkpoints=[multimodal]", "data.root=/nowhere"], "there is no data in /nowhere"),
    ],
)
def test_a_mistake_ends_in_one_sentence_and_leaves_nothing(runs, tmp_path, words, problem):
    code, _, error = draw(runs, tmp_path / "out", *words)
    assert code == 2
    assert problem in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_run_is_found_by_a_part_of_its_name_when_there_is_one(tmp_path):
    for name in ("shapes-discrete-seed1", "shapes-multimodal-seed1", "shapes-multimodal-seed2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "best.pt").touch()
    assert find_run("discrete", tmp_path) == tmp_path / "shapes-discrete-seed1"
    assert find_run("shapes-multimodal-seed2", tmp_path).name == "shapes-multimodal-seed2"
    path = tmp_path / "shapes-discrete-seed1" / "best.pt"
    assert find_run(str(path), tmp_path) == path
    with pytest.raises(ValueError, match="may be any of shapes-multimodal-seed1, shapes-multi"):
        find_run("multimodal", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"runs in .*: shapes-discrete-seed1, shapes"):
        find_run("crete", tmp_path)


@pytest.mark.parametrize("head", ["multimodal", "discrete"])
def test_examples_of_one_model_are_drawn_into_a_folder(runs, small_dataset, config, tmp_path, head):
    trained = load_trained(runs / head)
    written = draw_examples(trained, small_dataset, tmp_path / "figures", config.runtime, num=2)
    assert len(written) == 2
    assert set(listing(tmp_path / "figures")) == {path.name for path in written}
    again = draw_examples(trained, small_dataset, tmp_path / "figures", config.runtime, num=2)
    assert again == written


def test_examples_that_cannot_be_drawn_are_a_notice(
    runs, small_dataset, config, tmp_path, capsys, monkeypatch
):
    copy = tmp_path / "data"
    shutil.copytree(small_dataset, copy)
    shutil.rmtree(copy / "images")
    trained = load_trained(runs / "discrete")
    assert draw_examples(trained, copy, tmp_path / "figures", config.runtime) == []
    printed = capsys.readouterr().out
    assert printed.startswith("no figures: ")
    assert len(printed.splitlines()) == 1
    monkeypatch.setattr("scripts.gathering.importlib.util.find_spec", lambda name: None)
    assert draw_examples(trained, small_dataset, tmp_path / "figures", config.runtime) == []
    assert capsys.readouterr().out == (
        "no figures: matplotlib is not installed (pip install -e '.[plot]')\n"
    )
    assert not (tmp_path / "figures").exists()


def test_photos_are_upright_and_rgb_whatever_the_file(album, tmp_path, small_dataset):
    copy = tmp_path / "data"
    shutil.copytree(small_dataset, copy)
    image_id = int(album.questions.image_ids[0])
    path = Folder(copy).images("val", image_id)
    path.unlink()
    sideways = Image.fromarray(np.arange(24, dtype=np.uint8).reshape(4, 6))
    exif = Image.Exif()
    exif[0x0112] = 6
    sideways.save(path.with_suffix(".jpg"), exif=exif)
    photo = type(album)(Folder(copy), *list(vars(album).values())[1:]).photo(image_id)
    assert photo.shape == (6, 4, 3)


def test_probabilities_and_answers_are_written_as_they_are():
    shown = [show_percent(p) for p in (0, 0.001, 0.504, 0.996, 1)]
    assert shown == ["0 %", "< 1 %", "50 %", "> 99 %", "100 %"]
    assert count_answers(("no", "yes", "yes", "")) == "yes (2), no (1), (empty answer) (1)"
