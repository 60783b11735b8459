import pytest
import torch

import attention
import mcan
from mcan.cost.operations import OperationLog
from mcan.network.layers import MultiHeadAttention
from tests.attention.examples import head_variants, iterate_twice, name_variant

TINY = mcan.Sizes(
    num_words=30, num_answers=11, num_features=7, embedding=12, hidden=16, num_layers=2,
    num_heads=4, pooling=16, output=32,
)  # fmt: skip
SMALL = mcan.Sizes(num_words=20000, num_answers=3129, num_features=2048)
SHAPES = [(8, 10), (3, 4), (10, 8)]

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")


def batch(shapes=SHAPES, device="cpu", dtype=torch.float32, sizes=TINY):
    generator = torch.Generator().manual_seed(0)
    grid = attention.Grid.of(shapes, device=device)
    features = torch.randn(len(grid), grid.num_cells, sizes.num_features, generator=generator)
    tokens = torch.randint(1, sizes.num_words, (len(grid), 14), generator=generator)
    tokens[0, 5:] = tokens[1, 1:] = 0
    return features.to(device, dtype), grid, tokens.to(device)


@pytest.fixture(params=head_variants(), ids=name_variant)
def model(request):
    torch.manual_seed(0)
    name, options = request.param
    return mcan.MCAN(TINY, attention.build(name, **options))


def test_small_has_57_million_parameters_under_every_head():
    for name in attention.available():
        with torch.device("meta"):
            small = mcan.MCAN(SMALL, attention.build(name))
        assert mcan.count_parameters(small) == pytest.approx(57.64e6, abs=0.005e6)


def test_parameters_are_identical_under_every_head(model):
    discrete = mcan.MCAN(TINY, attention.build("discrete"))
    own = {name: tuple(p.shape) for name, p in model.state_dict().items()}
    assert own == {name: tuple(p.shape) for name, p in discrete.state_dict().items()}


def test_an_answer_depends_neither_on_batch_mates_nor_on_padding(model):
    model.eval().double()
    features, grid, tokens = batch(dtype=torch.float64)
    together = model(features, grid, tokens)
    assert together.shape == (3, 11)
    for row, (height, width) in enumerate(SHAPES):
        alone = model(
            features[row : row + 1, : height * width],
            attention.Grid.of([(height, width)]),
            tokens[row : row + 1],
        )
        torch.testing.assert_close(together[row], alone[0], atol=1e-8, rtol=1e-8)


@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize("shapes", [SHAPES, [(8, 10)] * 3])
def test_an_image_that_is_computed_once_gives_its_questions_the_same_answers(model, shapes, split):
    model.eval().double()
    model.splits_first_layer = split
    features, grid, _ = batch(shapes, dtype=torch.float64)
    index = torch.tensor([2, 0, 0, 1, 2, 0])
    tokens = torch.randint(1, 30, (6, 14), generator=torch.Generator().manual_seed(1))
    asked = attention.Grid.of([grid.sizes[n] for n in index.tolist()])
    pooled, shared = model.attend(features, asked, tokens, image_index=index)
    expected, plain = model.attend(features[index], asked, tokens)
    torch.testing.assert_close(pooled, expected)
    torch.testing.assert_close(shared.context, plain.context)
    torch.testing.assert_close(shared.weights, plain.weights)


def test_a_shared_image_costs_less_than_a_copy_for_each_question():
    model = mcan.MCAN(TINY, attention.build("discrete")).to("meta").eval()
    features, grid, tokens = batch([(8, 10)] * 6, device="meta")
    flops = []
    for num_images in (2, 6):
        with OperationLog() as log:
            index = torch.arange(6) % num_images
            model.attend(features[:num_images], grid, tokens, image_index=index)
        flops.append(log.flops)
    assert flops[0] < flops[1]


def test_words_behind_the_question_change_nothing(model):
    model.eval()
    features, grid, tokens = batch()
    shorter = model(features, grid, tokens[:, :14])
    longer = model(features, grid, torch.cat([tokens, torch.zeros(3, 4, dtype=torch.int64)], 1))
    torch.testing.assert_close(shorter, longer)


def test_an_empty_question_has_an_answer(model):
    features, grid, tokens = batch()
    assert model(features, grid, torch.zeros_like(tokens)).isfinite().all()


def run_on_meta(model, training, shapes):
    model.to("meta").train(training)
    iterate_twice(model.pool_image.head)
    features, grid, tokens = batch(shapes, device="meta")
    # an LSTM on this device is a dozen operations a word, and the third is like the second
    logits = model(features, grid, tokens[:, :3])
    assert logits.device.type == "meta"
    logits.sum().backward()
    assert all(p.grad is not None and p.grad.shape == p.shape for p in model.parameters())


@pytest.mark.parametrize(("training", "shapes"), [(True, SHAPES), (False, [(8, 10)] * 3)])
def test_the_whole_model_runs_forward_and_backward_on_the_meta_device(model, training, shapes):
    """Heads alone, in training and not, on both kinds of grids: tests/attention/test_heads.py."""
    run_on_meta(model, training, shapes)


@pytest.mark.parametrize(("training", "shapes"), [(True, [(8, 10)] * 3), (False, SHAPES)])
def test_either_kind_of_grids_runs_on_the_meta_device_in_training_and_not(training, shapes):
    run_on_meta(mcan.MCAN(TINY, attention.build("multimodal")), training, shapes)


def test_every_parameter_gets_a_gradient(model, device):
    model.to(device)(*batch(device=device)).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_one_batch_can_be_learnt_by_heart(model):
    features, grid, tokens = batch()
    targets = torch.eye(11)[[2, 5, 7]]
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(20):
        optimizer.zero_grad()
        logits = model(features, grid, tokens, step=step)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            logits, targets, reduction="sum"
        )
        loss.backward()
        optimizer.step()
    assert model.eval()(features, grid, tokens).argmax(1).tolist() == [2, 5, 7]


def test_dropout_acts_in_training_alone(model):
    inputs = batch([(8, 10)] * 3)
    first, second = (model.train()(*inputs, num_components=1) for _ in range(2))
    assert not torch.equal(first, second)
    first, second = (model.eval()(*inputs) for _ in range(2))
    assert torch.equal(first, second)


def test_float16_features_are_taken_as_they_come_from_the_store(model):
    features, grid, tokens = batch()
    whole = model.eval()(features.half().float(), grid, tokens)
    torch.testing.assert_close(model(features.half(), grid, tokens), whole)


def test_word_vectors_of_another_shape_raise(model):
    mcan.set_embeddings(model, torch.ones(30, 12))
    assert (model.embedding.weight == 1).all()
    with pytest.raises(ValueError, match=r"\(30, 13\) do not fit the model's \(30, 12\)"):
        mcan.set_embeddings(model, torch.ones(30, 13))


@pytest.mark.parametrize("num_heads", [3, 0, -4])
def test_hidden_must_be_divisible_by_the_number_of_heads(num_heads):
    problem = f"hidden=16 cannot be divided among num_heads={num_heads}"
    with pytest.raises(ValueError, match=problem):
        MultiHeadAttention(16, num_heads, 0.1)
