"""The weights that are passed on are those that the layers attended with."""

import pytest
import torch

import attention
import mcan
from mcan.attention_arrays import layers
from mcan.attention_arrays.layers import (
    choose_layers,
    list_layers,
    watch_layers,
    watch_question_pooling,
)
from tests.mcan.network.test_model import SHAPES, TINY, batch

NAMES = [
    "encoder.0.self_attention", "encoder.1.self_attention",
    "decoder.0.self_attention", "decoder.0.guided_attention",
    "decoder.1.self_attention", "decoder.1.guided_attention",
]  # fmt: skip
INDEX = torch.tensor([2, 0, 0, 1, 2, 0])


@pytest.fixture
def model():
    torch.manual_seed(0)
    return mcan.MCAN(TINY, attention.build("discrete")).eval()


def watch(model, features, grid, tokens, image_index=None, names=NAMES):
    """All weights of a batch by layer, joined."""
    found = {name: [] for name in names}
    ends = dict.fromkeys(names, 0)

    def receive(name, rows, weights):
        assert (rows.start, rows.stop - rows.start) == (ends[name], len(weights))
        ends[name] = rows.stop
        found[name].append(weights)

    with torch.inference_mode(), watch_layers(model, names, receive, image_index):
        model.attend(features, grid, tokens, image_index=image_index)
    return {name: torch.cat(parts) for name, parts in found.items()}


def keep_calls(model):
    """Inputs and outputs of every multi-head attention, as they come while the model runs."""
    calls = {}
    for name, layer in list_layers(model).items():
        layer.register_forward_hook(
            lambda layer, inputs, output, name=name: calls.update({name: (inputs, output)})
        )
    return calls


@pytest.mark.parametrize("shapes", [SHAPES, [(8, 10)] * 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_weights_times_the_values_through_the_projection_are_the_layers_output(
    model, shapes, dtype
):
    calls, inputs = keep_calls(model), batch(shapes)
    with torch.autocast("cpu", dtype=dtype, enabled=dtype != torch.float32):
        weights = watch(model, *inputs)
    assert set(weights) == set(calls) == set(NAMES)
    exact = dtype == torch.float32
    for name, layer in list_layers(model).items():
        (_, memory, _), output = calls[name]
        with torch.no_grad(), torch.autocast("cpu", dtype=dtype, enabled=not exact):
            value = layer.value(memory).unflatten(2, (4, 4)).transpose(1, 2)  # (B, heads, N, 4)
            attended = torch.einsum("bhmn,bhnd->bmhd", weights[name].to(value.dtype), value)
            expected = layer.merge(attended.flatten(2))
        tolerance = 1e-5 if exact else 0.03
        torch.testing.assert_close(output, expected, atol=tolerance, rtol=tolerance)
        assert weights[name].dtype == torch.float32
        torch.testing.assert_close(weights[name].sum(-1), torch.ones(weights[name].shape[:3]))


@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize("index", [INDEX, torch.tensor([2, 0, 1])])
def test_questions_that_share_images_get_the_weights_that_they_get_alone(model, split, index):
    model.splits_first_layer = split
    features, grid, _ = batch()
    tokens = torch.randint(1, 30, (len(index), 14), generator=torch.Generator().manual_seed(1))
    asked = attention.Grid.of([grid.sizes[n] for n in index.tolist()])
    shared = watch(model, features, asked, tokens, index)
    alone = watch(model, features[index], asked, tokens)
    for name in NAMES:
        torch.testing.assert_close(shared[name], alone[name])
    # else an order of images could be taken for that of questions
    assert not torch.allclose(alone[NAMES[2]][0], alone[NAMES[2]][1])


def test_weights_come_some_questions_at_a_time(model, monkeypatch):
    whole = watch(model, *batch(), names=NAMES[2:3])
    monkeypatch.setattr(layers, "AT_A_TIME", 2 * 4 * 80 * 80)
    parts = []
    with watch_layers(model, NAMES[2:3], lambda *part: parts.append(part), None):
        model.attend(*batch())
    assert [(rows.start, rows.stop) for _, rows, _ in parts] == [(0, 2), (2, 3)]
    torch.testing.assert_close(torch.cat([weights for _, _, weights in parts]), whole[NAMES[2]])


def test_the_pooled_weights_of_the_words_give_the_pooled_question(model):
    _, _, tokens = inputs = batch()
    words = []
    model.pool_question.register_forward_hook(lambda module, given, output: words.append(given[0]))
    with torch.inference_mode(), watch_question_pooling(model) as found:
        pooled, _ = model.attend(*inputs)
    (weights,) = found
    assert (weights[tokens == 0] == 0).all()
    assert (weights[tokens != 0] > 0).all()
    context = torch.einsum("bt,bth->bh", weights, words[0])
    torch.testing.assert_close(model.pool_question.merge(context), pooled)


def test_watching_leaves_the_model_as_it_was_even_after_an_error(model):
    inputs = batch()
    before = model(*inputs)

    def fail(*part):
        raise OSError("full")

    with (
        pytest.raises(OSError, match="full"),
        watch_layers(model, NAMES, fail, None),
        watch_question_pooling(model) as found,
    ):
        model(*inputs)
    assert torch.equal(model(*inputs), before)
    assert not found


def test_layers_are_chosen_by_their_names_or_what_these_begin_with(model):
    assert choose_layers(model, "all") == choose_layers(model, ["all"]) == NAMES
    assert choose_layers(model, []) == []
    assert choose_layers(model, ["decoder.1", "encoder.0"]) == [NAMES[0], *NAMES[4:]]
    assert choose_layers(model, "decoder.0.guided_attention") == [NAMES[3]]
    for wrong in ("decoder.2", "decoder.", "encoder.0.guided_attention", "0", ""):
        with pytest.raises(ValueError, match=rf"^there is no layer '{wrong}'; name some of enc"):
            choose_layers(model, ["encoder.0", wrong])
