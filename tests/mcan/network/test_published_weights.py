"""Weights of the published MCAN give its published probabilities: tests/golden/mcan_tiny.npz."""

from pathlib import Path

import numpy as np
import pytest
import torch

import attention
import mcan

GOLDEN = np.load(Path(__file__).parents[2] / "golden" / "mcan_tiny.npz")
SIZES = [(5, 6), (2, 13), (2, 11)]  # 30, 26 and 22 cells: all-zero rows are padding there
HEADS = int(GOLDEN["config"][1])


@pytest.fixture
def state():
    return {
        n.removeprefix("state/"): torch.tensor(GOLDEN[n]) for n in GOLDEN if n.startswith("state/")
    }


@pytest.fixture
def inputs():
    return torch.tensor(GOLDEN["image"]), attention.Grid.of(SIZES), torch.tensor(GOLDEN["question"])


def test_probabilities_equal_the_published_ones(state, inputs):
    model = mcan.from_published(state, num_heads=HEADS).eval()
    with torch.no_grad():
        probabilities = model(*inputs).sigmoid()
    np.testing.assert_allclose(probabilities, GOLDEN["probabilities"], atol=1e-6)


def test_float32_weights_give_the_probabilities_to_five_digits(state, inputs):
    image, grid, question = inputs
    model = mcan.from_published({n: t.float() for n, t in state.items()}, num_heads=HEADS).eval()
    with torch.no_grad():
        probabilities = model(image.float(), grid, question).sigmoid()
    np.testing.assert_allclose(probabilities, GOLDEN["probabilities"], atol=1e-5)


def test_every_size_is_read_off_the_weights(state):
    hidden, heads, layers, words, answers, features, embedding, _ = map(int, GOLDEN["config"])
    sizes = mcan.from_published(state, num_heads=heads).sizes
    expected = words, answers, features, embedding, hidden, layers, heads, hidden, 2 * hidden
    assert sizes == mcan.Sizes(*expected)


@pytest.mark.parametrize(
    "name", ["frcnfeat_linear", "gridfeat_linear", "adapter.frcn_linear", "adapter.grid_linear"]
)
def test_openvqas_names_are_accepted(state, inputs, name):
    theirs = {f"module.{n.replace('img_feat_linear', name)}": t for n, t in state.items()}
    with torch.no_grad():
        probabilities = mcan.from_published(theirs, num_heads=HEADS).eval()(*inputs).sigmoid()
    np.testing.assert_allclose(probabilities, GOLDEN["probabilities"], atol=1e-6)


@pytest.mark.filterwarnings("ignore:a constant image")
def test_the_weights_load_under_every_head(state, inputs):
    for head in attention.available():
        model = mcan.from_published(state, num_heads=HEADS, attention=head).eval()
        assert model(*inputs).isfinite().all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.pop("proj.weight"), "classify.weight"),
        (lambda s: s.pop("backbone.enc_list.1.norm2.b_2"), "lack encoder.1.after_feed_forward"),
        (lambda s: s.update({"surplus": torch.zeros(1)}), "also hold surplus"),
        (lambda s: s.update({"spatfeat_linear.weight": torch.zeros(1)}), "bounding boxes"),
        (lambda s: s.update({"attflat_img.mlp.linear.weight": torch.zeros(2, 32)}), "2 glimpses"),
    ],
)
def test_other_weights_raise_an_error_that_names_what_differs(state, change, message):
    change(state)
    with pytest.raises(ValueError, match=message):
        mcan.from_published(state, num_heads=HEADS)
