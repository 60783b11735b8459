"""One picture and one question: the answers that evaluation gives, under any K and λ."""

import numpy as np
import pytest
import torch
from PIL import Image

from attention import Grid
from data.backbones.registry import open_backbone
from data.features.store_set import open_stores
from data.io.images import read_image
from data.vqa.data_folder import DataFolder
from data.vqa.questions import load_questions
from figures.answer_figure import make_answer_figure
from figures.attention_samples import collect_samples, read_mixtures
from figures.illustrated_split import to_photo
from mcan.evaluation.single_question import open_with_backbone
from mcan.evaluation.trained_model import load_trained
from mcan.runtime.settings import Runtime
from tests.data.backbones.sample_networks import LAYOUTS, draw_state
from tests.small_models import change_features, draw_picture

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")

QUESTION = "What color is the circle?"


def open_model(run, weights=None, **changed):
    return open_with_backbone(load_trained(run, changed=changed), weights=weights, precision="auto")


@pytest.fixture(scope="module")
def picture():
    return draw_picture().convert("RGB")


@pytest.fixture(scope="module")
def model(peaky_run):
    return open_model(peaky_run, lam=0.3)


@pytest.fixture(scope="module")
def forward(model, picture):
    return model.run(picture, QUESTION)


def test_a_network_whose_weights_are_nan_is_named(peaky_run, picture):
    broken = open_model(peaky_run)
    broken.trained.model.classify.bias.data.fill_(torch.nan)
    with pytest.raises(ValueError, match=r"the answers of .*best\.pt are NaN: its weights or"):
        broken.run(picture, QUESTION).answer()


def test_a_question_of_the_dataset_gets_the_answer_that_evaluation_gives(model, small_dataset):
    folder = DataFolder(small_dataset)
    questions = load_questions([folder.questions("val")])
    stores = open_stores(folder.stores("val"), "mmap", None)
    runtime = Runtime(show_progress=False, loader_threads=0)
    samples = collect_samples(model.trained, questions, stores, runtime)
    for row in range(0, len(questions), 5):
        image = folder.image("val", int(questions.image_ids[row]))
        answer = model.run(read_image(image), questions.texts[row]).answer()
        found, expected = answer.predictions[0], samples[row].prediction
        assert found.answer == expected.answer
        assert found.probability == pytest.approx(expected.probability, rel=1e-4)
        assert answer.num_components == samples[row].num_components
        (mixture,) = read_mixtures(answer.mixture)
        np.testing.assert_allclose(mixture.mu, samples[row].mixture.mu, atol=1e-6)
    assert len({sample.num_components for sample in samples}) > 1  # else this shows little


def test_another_lambda_is_what_a_model_with_that_lambda_answers(peaky_run, forward, picture):
    numbers = set()
    for lam in (0.0, 0.3, 1.0, 20.0):
        expected = open_model(peaky_run, lam=lam).run(picture, QUESTION).answer()
        answer = forward.answer(lam)
        assert answer.predictions == expected.predictions
        assert torch.equal(answer.mixture.sigma, expected.mixture.sigma)
        likelihoods = forward.attended.candidates.log_likelihood[0].numpy()
        lengths = -2 * likelihoods + lam * np.arange(1, 5)
        np.testing.assert_allclose(answer.description_lengths, lengths)
        assert answer.num_components == int(lengths.argmin()) + 1
        numbers.add(answer.num_components)
    assert len(numbers) > 1


def test_a_given_number_of_components_is_what_the_network_answers_with_it(model, forward, picture):
    network, words = model.trained.model, model.trained.words
    described = torch.from_numpy(model.backbone.describe(picture)).half().flatten(0, 1)
    tokens = torch.tensor([words.encode(QUESTION)])
    grid = Grid.of([forward.size])
    for k in range(1, 5):
        with torch.inference_mode():
            logits = network(described[None], grid, tokens, num_components=k)[0]
        answer = forward.answer(5.0, k)
        assert answer.num_components == k
        best = logits.argsort(descending=True)[:5].tolist()
        answers = [prediction.answer for prediction in answer.predictions]
        assert answers == [words.answers.words[n] for n in best]
        found = [prediction.probability for prediction in answer.predictions]
        np.testing.assert_allclose(found, logits.sigmoid()[best].numpy(), rtol=1e-4)


@pytest.mark.parametrize(
    ("make", "shape"),
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
def test_a_picture_may_be_of_any_kind_and_keeps_its_aspect(model, make, shape, tmp_path):
    make().save(tmp_path / "picture.png")
    picture = read_image(tmp_path / "picture.png")
    forward = model.run(picture, QUESTION)
    content = make_answer_figure(forward, forward.answer(), to_photo(picture, 1000))
    assert content.photo.shape == (*shape, 3)
    assert content.panels[1].heat(*shape).shape == shape


def test_what_is_transparent_is_white(model):
    clear, white = (
        model.run(draw_picture(background=color), QUESTION).answer()
        for color in ((0, 0, 0, 0), (255, 255, 255, 255))
    )
    assert clear.predictions == white.predictions


def test_discrete_attention_has_answers_and_no_k_to_select(discrete_run, picture):
    forward = open_model(discrete_run).run(picture, QUESTION)
    answer = forward.answer(3.0, 2)
    assert (forward.k_max, answer.num_components, answer.description_lengths) == (0, 0, ())
    assert forward.weights.sum() == pytest.approx(1)
    content = make_answer_figure(forward, answer, np.asarray(picture))
    assert [panel.title for panel in content.panels] == ["image", "discrete"]


def test_words_that_the_model_does_not_know_are_named(model, picture):
    assert model.run(picture, QUESTION).notices == ()
    assert model.run(picture, "Is the zebra red?").notices == (
        "“zebra”: a word that the model has never read",
    )
    (notice,) = model.run(picture, "zebra gnu zebra").notices
    assert notice == "“zebra”, “gnu”: words that the model has never read"
    (notice,) = model.run(picture, "red " * 15).notices
    assert notice == "only the first 14 words of the question are read"


def test_a_network_describes_the_picture_when_its_weights_are_given(
    multimodal_run, picture, tmp_path
):
    weights = str(tmp_path / "R-50.pth")
    torch.save({"model": draw_state(LAYOUTS["r50"])}, weights)
    backbone = open_backbone("r50", weights, resize=(64, 128))
    features = {"backbone": "R-50", "resize": (64, 128), "num_features": 2048}
    source = f"x (3 files), weights {backbone.weights}"
    right = change_features(multimodal_run, tmp_path / "right", source=source, **features)
    forward = open_model(right, weights).run(picture, QUESTION)
    assert forward.size == backbone.choose_grid(300, 200) == (2, 3)
    source = "x (3 files), weights 0123456789ab"
    other = change_features(multimodal_run, tmp_path / "other", source=source, **features)
    with pytest.raises(ValueError, match=r"features of other R-50 weights .*0123456789ab"):
        open_model(other, weights)
    same = r"needs .*R-50\.pth; pass the weights= that they were extracted with \(fingerprint 0123"
    with pytest.raises(ValueError, match=same):
        open_model(other)
    unnamed = change_features(multimodal_run, tmp_path / "unnamed", source="x", **features)
    with pytest.raises(ValueError, match=r"pass weights=R-50\.pth$"):
        open_model(unnamed)
    open_model(unnamed, weights)
