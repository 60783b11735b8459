"""The word maps of a figure are the last guided attention, and all words share one scale."""

import numpy as np
import pytest
import torch

from attention import Grid
from data.text.tokenizer import tokenize
from figures.drawing.figure import draw_figure
from figures.drawing.heat import blend
from figures.layer_figures import NO_WORD, WordMaps, collect_word_maps, compare_words


@pytest.fixture(scope="module")
def word_maps(models, split, runtime):
    return collect_word_maps(models[2], split, split.questions.ids[::9].tolist(), runtime)


def test_maps_are_the_heads_average_of_the_decoders_last_guided_attention(models, split, word_maps):
    model, questions = models[2].model, split.questions
    inputs = []
    handle = model.decoder[-1].guided_attention.register_forward_hook(
        lambda layer, given, output: inputs.append(given)
    )
    for number, found in word_maps.items():
        row = split.row(number)
        place = int(split.stores.positions(questions.image_ids[row : row + 1])[0])
        size = int(split.stores.heights[place]), int(split.stores.widths[place])
        rows = np.empty((size[0] * size[1], split.stores.num_features), np.float16)
        split.stores.copy_rows(place, rows)
        tokens = torch.tensor([models[2].words.encode(questions.texts[row])])
        with torch.inference_mode():
            model.attend(torch.from_numpy(rows)[None], Grid.of([size]), tokens)
        expected = attend_by_loops(model.decoder[-1].guided_attention, inputs.pop(), size)
        assert found.words == tuple(tokenize(questions.texts[row]))
        np.testing.assert_allclose(found.maps, expected[: len(found.words)], atol=1e-5)
        np.testing.assert_allclose(found.maps.sum(0), 1, atol=1e-5)
    handle.remove()


def attend_by_loops(layer, inputs, size):
    """(T, h, w): softmax(QKᵀ/√d) on average over the heads, in NumPy."""
    cells, words, mask = (part[0].double().numpy() for part in inputs)
    linear = {
        name: [p.detach().double().numpy() for p in getattr(layer, name).parameters()]
        for name in ("query", "key")
    }
    query = cells @ linear["query"][0].T + linear["query"][1]
    key = words @ linear["key"][0].T + linear["key"][1]
    width = query.shape[1] // layer.num_heads
    maps = np.zeros((len(words), len(cells)))
    for head in range(layer.num_heads):
        part = slice(head * width, (head + 1) * width)
        scores = query[:, part] @ key[:, part].T / np.sqrt(width)
        scores[:, mask.ravel() == 0] = -np.inf
        shares = np.exp(scores - scores.max(1, keepdims=True))
        maps += (shares / shares.sum(1, keepdims=True)).T / layer.num_heads
    return maps.reshape(len(words), *size)


def test_the_figure_has_the_pooled_map_and_a_panel_for_every_word_on_one_scale(
    split, samples, word_maps
):
    number, found = next(iter(word_maps.items()))
    sample = next(each for each in samples[2] if each.question_id == number)
    content = compare_words(split, "multimodal", sample, found)
    assert [panel.title for panel in content.panels] == [
        "image",
        "multimodal, pooled",
        *found.words,
    ]
    assert content.panels[1].mixture is sample.mixture
    for panel, cells in zip(content.panels[2:], found.maps, strict=True):
        assert np.array_equal(panel.cells, cells)
        assert panel.peak == found.maps.max()
    assert len(draw_figure(content).axes) == len(content.panels) + 1


def test_equal_shares_have_equal_colours_whatever_else_a_panel_shows():
    photo = np.full((4, 4, 3), 128, np.uint8)
    weak, strong = np.full((4, 4), 0.2), np.full((4, 4), 0.2)
    strong[0, 0] = 0.8
    shown = [blend(photo, heat, peak=0.8) for heat in (weak, strong)]
    assert np.array_equal(shown[0][1:], shown[1][1:])
    assert not np.array_equal(blend(photo, weak)[1:], shown[0][1:])


def test_a_question_without_words_is_drawn(split, samples):
    sample = samples[0][0]
    maps = WordMaps((NO_WORD,), np.ones((1, *sample.cells.shape)))
    assert compare_words(split, "discrete", sample, maps).panels[2].title == NO_WORD
