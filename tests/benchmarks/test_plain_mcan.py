"""The baseline of training and evaluation gives the fast model's results: it is slow, not wrong."""

from pathlib import Path

import numpy as np
import pytest
import torch

import mcan
from attention import Grid
from benchmarks.parts.evaluation import make_evaluations
from benchmarks.reference.plain_mcan import PlainMCAN
from mcan.network.model import Sizes

GOLDEN = np.load(Path(__file__).parents[1] / "golden" / "mcan_tiny.npz")
SIZES = Sizes(50, 20, 16, embedding=8, hidden=64, num_layers=2, num_heads=2, pooling=16, output=32)

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")


def test_probabilities_are_the_published_ones():
    hidden, heads, layers, words, answers, features, embedding, _ = map(int, GOLDEN["config"])
    sizes = Sizes(words, answers, features, embedding, hidden, layers, heads, hidden, 2 * hidden)
    model = PlainMCAN(sizes).double().eval()
    names = [name for name in GOLDEN if name.startswith("state/")]
    model.load_state_dict({n.removeprefix("state/"): torch.tensor(GOLDEN[n]) for n in names})
    with torch.no_grad():
        logits = model(torch.tensor(GOLDEN["image"]), torch.tensor(GOLDEN["question"]))
    np.testing.assert_allclose(logits.sigmoid(), GOLDEN["probabilities"], atol=1e-6)


def test_logits_and_gradients_on_padded_mixed_batches_equal_the_fast_models():
    torch.manual_seed(0)
    plain = PlainMCAN(SIZES, p=0.0).double()
    fast = mcan.from_published(plain.state_dict(), SIZES.num_heads, dropout=0.0)
    shapes = [(4, 5), (3, 3), (6, 4)]
    features = torch.rand(3, 30, SIZES.num_features, dtype=torch.float64)
    for row, (height, width) in zip(features, shapes, strict=True):
        row[height * width :] = 0
    tokens = torch.randint(1, 50, (3, 14))
    tokens[0, 5:] = tokens[2, 1:] = 0
    results = [plain(features, tokens), fast(features[:, :24], Grid.of(shapes), tokens)]
    torch.testing.assert_close(*results, atol=1e-5, rtol=1e-5)  # of 1e-6 beside the deviation
    for result in results:
        result.square().sum().backward()
    pairs = [
        (plain.img_feat_linear, fast.project_features),
        (plain.backbone.dec_list[0].mhatt2.linear_q, fast.decoder[0].guided_attention.query),
        (plain.backbone.dec_list[1].mhatt1.linear_k, fast.decoder[1].self_attention.key),
        (plain.proj, fast.classify),
    ]
    for one, other in pairs:
        torch.testing.assert_close(one.weight.grad, other.weight.grad, atol=1e-4, rtol=1e-3)


def test_both_evaluations_give_every_question_the_same_answer(tmp_path):
    ours, plain = make_evaluations(tmp_path, 7, 5, SIZES, torch.device("cpu"))
    pooling, published = ours.model.pool_image, plain.model.attflat_img
    with torch.no_grad():  # peaky attention, and answers that depend on what it sees
        for layers, factor in (
            ((pooling.score_network.score, published.mlp.linear), 40),
            ((pooling.merge, published.linear_merge), 20),
            ((ours.model.classify, plain.model.proj), 5),
        ):
            for layer in layers:
                layer.weight *= factor
    answers = ours.answer()
    assert torch.equal(answers, plain())
    assert len(answers.unique()) > 3
    assert ours.tabulate() == 80
