"""What every registered head must do; a new head inherits these tests."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import attention
from tests.attention.examples import every_variant, head_variants, iterate_twice, name_variant

HEADS = [
    *head_variants(),
    ("unimodal", {"floor": "cell"}),
    ("unimodal", {"covariance": "spherical"}),
    ("multimodal", {"init": "weighted"}),
    ("multimodal", {"init": "weighted", "normaliser": "sparsemax"}),
    (
        "multimodal",
        {"floor": "cell", "covariance": "spherical", "penalty": "parameters", "lam": 0.1},
    ),
]
SIZES = [(8, 10), (10, 8), (3, 4)]

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")


@pytest.fixture(params=HEADS, ids=name_variant)
def head(request):
    name, options = request.param
    return attention.build(name, **options)


def build_with_ridge(variant, ridge):
    """A head whose own operators no other test has left in a cache."""
    name, options = variant
    return attention.build(name, **options, **({} if name == "discrete" else {"ridge": ridge}))


def batch(sizes, dtype=torch.float64, features=5, seed=0, device="cpu", temperature=2.0):
    grid = attention.Grid.of(sizes, device=device)
    generator = torch.Generator().manual_seed(seed)
    scores = temperature * torch.randn(len(grid), grid.num_cells, generator=generator)
    values = torch.randn(len(grid), grid.num_cells, features, generator=generator)
    return scores.to(device, dtype), values.to(device, dtype), grid


def one(image, scores, values, grid):
    height, width = grid.sizes[image]
    cells = slice(height * width)
    alone = attention.Grid.of([(height, width)], device=grid.device)
    return scores[image : image + 1, cells], values[image : image + 1, cells], alone


@pytest.mark.parametrize("training", [True, False])
def test_weights_are_a_distribution_over_real_cells_and_context_has_the_values_shape(
    head, training, device
):
    scores, values, grid = batch(SIZES, torch.float32, device=device)
    out = head.train(training)(scores, values, grid)
    assert out.context.shape == (3, 5)
    assert out.context.dtype == out.weights.dtype == torch.float32
    assert out.context.device.type == device.type
    torch.testing.assert_close(out.weights.sum(1).cpu(), torch.ones(3))
    assert not out.weights[~grid.mask].any()
    if out.mixture is not None:
        torch.testing.assert_close(out.mixture.pi.sum(-1).cpu(), torch.ones(3, 1).double())


@pytest.mark.parametrize("training", [True, False])
def test_gradients_equal_finite_differences(head, training):
    if getattr(head, "init", None) == "weighted":
        head.init = "uniform"  # weighted starts are constants to the gradient, not to a difference
    scores, values, grid = batch([(2, 3), (2, 2)], features=1, temperature=0.5)

    def context(scores, values):
        return head.train(training)(scores, values, grid, step=3).context

    inputs = (scores.requires_grad_(), values.requires_grad_())
    assert torch.autograd.gradcheck(context, inputs, eps=1e-7, atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_every_number_of_components_passes_gradients_in_training(k):
    scores, values, grid = batch([(4, 5)], features=2, temperature=0.5)
    head = attention.build("multimodal")

    def context(scores):
        return head(scores, values, grid, num_components=k, step=1).context

    assert torch.autograd.gradcheck(context, (scores.requires_grad_(),), eps=1e-7, atol=1e-5)
    out = head(scores, values, grid, num_components=k, step=1)
    assert out.mixture.num_components.tolist() == [[k]]


@pytest.mark.parametrize("training", [True, False])
def test_a_prediction_depends_neither_on_batch_mates_nor_on_padding_nor_on_order(
    head, training, device
):
    scores, values, grid = batch(SIZES, device=device)
    head.train(training)
    together = head(scores, values, grid, step=2).context
    for image in range(3):
        alone = head(*one(image, scores, values, grid), step=2).context[0]
        torch.testing.assert_close(together[image], alone, atol=1e-9, rtol=1e-9)
    order = [2, 0, 1]
    shuffled = attention.Grid.of([SIZES[i] for i in order], device=device)
    again = head(scores[order], values[order], shuffled, step=2).context
    torch.testing.assert_close(again, together[order], atol=1e-9, rtol=1e-9)


def test_what_stands_in_the_padding_changes_nothing(head):
    scores, values, grid = batch(SIZES)
    expected = head.eval()(scores, values, grid).context
    scores = torch.where(grid.mask, scores, 1e4)
    values = torch.where(grid.mask[..., None], values, 1e4)
    torch.testing.assert_close(head(scores, values, grid).context, expected)


def edge_scores(height, width):
    cells = height * width
    one_hot = torch.full((cells,), -1e4)
    one_hot[cells // 2] = 1e4
    line = torch.full((height, width), -50.0)
    line[:, width // 2] = torch.linspace(0, 1, height)
    diagonal = torch.full((height, width), -50.0)
    diagonal.diagonal().zero_()
    corners = torch.full((cells,), -1e4)
    corners[0] = corners[-1] = 0
    huge = torch.randn(cells, generator=torch.Generator().manual_seed(0)).sign() * 1e4
    return torch.stack(
        [one_hot, line.flatten(), diagonal.flatten(), corners, torch.zeros(cells), huge]
    )


@pytest.mark.parametrize("size", [(1, 1), (1, 12), (12, 1), (2, 2), (8, 10), (19, 32)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("training", [True, False])
def test_edges_give_finite_outputs_and_gradients(head, size, dtype, training, device):
    scores = edge_scores(*size).to(device, dtype).requires_grad_()
    grid = attention.Grid.of([size] * len(scores), device=device)
    values = torch.randn(len(scores), grid.num_cells, 4).to(device, dtype).requires_grad_()
    # what depends on the step is what a head draws in training
    for step in range(4 if training else 1):
        out = head.train(training)(scores, values, grid, step=step)
        assert out.context.isfinite().all()
        if out.mixture is not None:
            for field in (out.mixture.pi, out.mixture.mu, out.mixture.sigma):
                assert field.isfinite().all()
        gradients = torch.autograd.grad(out.context.float().square().sum(), [scores, values])
        assert all(gradient.isfinite().all() for gradient in gradients)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_context_comes_back_in_the_dtype_of_the_values(head, dtype):
    scores, values, grid = batch(SIZES, torch.float64)
    exact = head.eval()(scores, values, grid).context
    out = head(scores.float(), values.to(dtype), grid)
    assert out.context.dtype == dtype
    tolerance = {torch.float32: 1e-5, torch.float16: 2e-2, torch.bfloat16: 1e-1}[dtype]
    torch.testing.assert_close(out.context.double(), exact, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("training", [True, False])
def test_autocast_changes_nothing(head, training):
    scores, values, grid = batch(SIZES, torch.float32)
    head.train(training)
    plain = head(scores, values, grid)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        under = head(scores, values, grid)
    assert under.context.dtype == torch.float32
    assert torch.equal(plain.context, under.context)
    if plain.mixture is not None:
        assert torch.equal(plain.mixture.sigma, under.mixture.sigma)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("sizes", [[(8, 10)] * 3, SIZES])
def test_the_whole_head_runs_forward_and_backward_on_the_meta_device(head, training, sizes):
    """Nothing reads a value back, and no tensor is left on another device: meta allows neither."""
    grid = attention.Grid.of(sizes, device="meta")
    scores = torch.empty(3, grid.num_cells, device="meta", requires_grad=True)
    values = torch.empty(3, grid.num_cells, 5, device="meta", requires_grad=True)
    iterate_twice(head).train(training)(scores, values, grid).context.sum().backward()
    assert scores.grad.shape == scores.shape
    assert values.grad.shape == values.shape


class NothingReadBack(TorchDispatchMode):
    """Fails on the operators that make a CPU wait for a device."""

    waits = ("_local_scalar_dense", "nonzero", "item", "linalg", "unique", "masked_select")

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        assert not any(name in str(function) for name in self.waits), f"{function} waits"
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("training", [True, False])
def test_no_operator_of_a_step_waits_for_the_device(head, training):
    scores, values, grid = batch(SIZES, torch.float32)
    head.train(training)(scores, values, grid)  # the first pass fills the caches
    scores.requires_grad_()
    with NothingReadBack():
        head(scores, values, grid, num_components=2 if hasattr(head, "k_max") else None)
        head(scores, values, grid, step=0).context.sum().backward()


def test_a_head_owns_no_parameters_and_no_buffers(head):
    assert not list(head.parameters())
    assert not head.state_dict()


@pytest.mark.parametrize(
    ("scores", "values", "message"),
    [
        ((3, 79), torch.zeros(3, 80, 5), "scores of shape .3, 79. do not fit a grid of 3 images"),
        ((2, 80), torch.zeros(2, 80, 5), "do not fit"),
        ((3, 80), torch.zeros(3, 79, 5), "values of shape .3, 79, 5. do not fit"),
        ((3, 80), torch.zeros(3, 80), "values"),
        ((3, 80), torch.ones(3, 80, 5, dtype=torch.int64), "must be floating-point numbers"),
    ],
)
def test_tensors_that_do_not_fit_the_grid_raise(head, scores, values, message):
    with pytest.raises(ValueError, match=message):
        head(torch.zeros(scores), values, attention.Grid.of(SIZES))


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@every_variant
def test_values_are_checked_only_on_request(variant, bad):
    name, options = variant
    scores, values, grid = batch(SIZES, torch.float32)
    padded = scores.clone()
    padded[2, -1] = bad
    checked = attention.build(name, **options, validate=True)
    checked(padded, values, grid)  # padding may hold anything
    scores[1, 3] = bad
    attention.build(name, **options)(scores, values, grid)
    with pytest.raises(ValueError, match="not finite"):
        checked(scores, values, grid)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k_max": 0}, "k_max must be a whole number from 1 on, not 0"),
        ({"k_max": 2.5}, "k_max"),
        ({"lam": -1.0}, "lam must be zero or positive, not -1.0"),
        ({"lam": float("nan")}, "lam"),
        ({"lam": None}, "lam"),
        ({"lam": True}, "lam"),
        ({"floor": None}, "floor"),
        ({"seed": 1.5}, "seed must be a whole number"),
        ({"validate": "False"}, "validate must be True or False, not 'False'"),
        ({"num_restarts": 0}, "num_restarts"),
        ({"train_iterations": 0}, "train_iterations"),
        ({"test_iterations": -3}, "test_iterations"),
        ({"covariance": "diagonal"}, "covariance must be one of full, spherical, not 'diagonal'"),
        ({"penalty": "bic"}, "penalty must be one of"),
        ({"selection": "both"}, "selection must be one of"),
        ({"normaliser": "sparse"}, "normaliser must be one of softmax, entmax15, sparsemax, not"),
        ({"init": "kmeans"}, "init must be one of uniform, weighted"),
        ({"floor": "pixel"}, "floor must be a variance such as 1e-6, or 'cell', not 'pixel'"),
        ({"floor": -1e-6}, "floor"),
        ({"num_basis": 99}, "num_basis must be a square number"),
        ({"num_basis": 1}, "num_basis"),
        ({"basis_variance": 0.0}, "basis_variance must be positive"),
        ({"ridge": 0.0}, "ridge must be positive"),
    ],
)
def test_a_bad_option_is_named_in_one_sentence(options, message):
    with pytest.raises(ValueError, match=message) as error:
        attention.build("multimodal", **options)
    assert "\n" not in str(error.value)


def test_lambda_and_iterations_may_be_changed_on_a_built_head():
    scores, values, grid = batch([(8, 10)] * 8, temperature=4.0)
    head = attention.build("multimodal", lam=1000.0).eval()
    assert (head(scores, values, grid).mixture.num_components == 1).all()
    head.lam = 0.0
    assert (head(scores, values, grid).mixture.num_components > 1).all()
    before = head(scores, values, grid).candidates.log_likelihood
    head.test_iterations = 1
    assert not torch.allclose(head(scores, values, grid).candidates.log_likelihood, before)
    head.train()
    first = head(scores, values, grid, num_components=3).mixture.mu
    head.train_iterations = 1
    assert not torch.allclose(head(scores, values, grid, num_components=3).mixture.mu, first)


def test_training_draws_change_with_the_step_and_the_seed_alone():
    scores, values, grid = batch([(8, 10)])
    head, other = attention.build("multimodal", seed=1), attention.build("multimodal", seed=2)
    outputs = [head(scores, values, grid, step=step) for step in range(30)]
    assert torch.equal(head(scores, values, grid, step=5).context, outputs[5].context)
    assert len({tuple(out.context[0].tolist()) for out in outputs}) > 12
    assert {out.mixture.num_components.item() for out in outputs} == {1, 2, 3, 4}
    assert not all(
        torch.equal(other(scores, values, grid, step=step).context, outputs[step].context)
        for step in range(8)
    )


def test_the_number_of_components_must_lie_within_k_max():
    scores, values, grid = batch([(8, 10)])
    with pytest.raises(ValueError, match=r"num_components must lie in 1…4, not 5"):
        attention.build("multimodal")(scores, values, grid, num_components=5)
    with pytest.raises(ValueError, match="one component"):
        attention.build("unimodal")(scores, values, grid, num_components=2)


def test_discrete_context_is_the_weighted_mean_of_the_values():
    scores, values, grid = batch([(3, 4)])
    out = attention.build("discrete")(scores, values, grid)
    weights = scores.exp() / scores.exp().sum()
    expected = sum(weights[0, cell] * values[0, cell] for cell in range(12))
    torch.testing.assert_close(out.context[0], expected)
    torch.testing.assert_close(out.weights, weights)
    assert out.mixture is None
    assert out.candidates is None


@every_variant
def test_training_works_after_an_evaluation_in_inference_mode(variant):
    """On a grid that inference saw first: what it left in the caches must serve training too."""
    scores, values, grid = batch([(13, 17)], torch.float32)  # of one shape: shared, not copied
    head = build_with_ridge(variant, 0.0123)
    with torch.inference_mode():
        head.eval()(scores, values, grid)
    scores.requires_grad_()
    for step in range(3):
        head.train()(scores, values, grid, step=step).context.sum().backward()
    assert scores.grad.isfinite().all()


@every_variant
def test_the_default_device_does_not_matter(variant):
    scores, values, grid = batch([(6, 11)], torch.float32)
    head = build_with_ridge(variant, 0.0234)
    try:
        torch.set_default_device("meta")
        contexts = [head.train(mode)(scores, values, grid).context for mode in (True, False)]
    finally:
        torch.set_default_device(None)
    for context, mode in zip(contexts, (True, False), strict=True):
        torch.testing.assert_close(context, head.train(mode)(scores, values, grid).context)


@pytest.mark.parametrize("name", attention.available())
def test_a_head_derived_from_another_may_normalise_scores_in_its_own_way(name):
    class Uniform(type(attention.build(name))):
        def normalise(self, scores, grid):
            return grid.mask / grid.mask.sum(1, keepdim=True).double()

    scores, values, grid = batch(SIZES)
    expected = attention.build(name).eval()(torch.zeros_like(scores), values, grid)
    out = Uniform().eval()(scores, values, grid)
    torch.testing.assert_close(out.weights, expected.weights)
    torch.testing.assert_close(out.context, expected.context)


@pytest.mark.parametrize("name", attention.available())
def test_a_head_of_ones_own_without_a_constructor_has_the_options_of_its_base(name):
    base = type(attention.build(name))

    class Own(base):
        pass

    scores, values, grid = batch(SIZES)
    expected = base(normaliser="sparsemax").eval()(scores, values, grid)
    out = Own(normaliser="sparsemax").eval()(scores, values, grid)
    assert torch.equal(out.context, expected.context)
    assert (out.weights == 0).double().mean() > 0.5


def test_validate_may_still_be_passed_on_by_position():
    class Own(attention.DiscreteHead):
        def __init__(self, validate):
            super().__init__(validate)

    scores, values, grid = batch(SIZES)
    assert (Own(True)(scores, values, grid).weights > 0)[grid.mask].all()
    scores[0, 0] = torch.nan
    with pytest.raises(ValueError, match="not finite"):
        Own(True)(scores, values, grid)


def test_schedulable_options_are_set_on_a_built_head_and_checked(head):
    for option, kind in head.schedulable.items():
        setattr(head, option, kind(3))
        assert getattr(head, option) == 3
        with pytest.raises(ValueError, match=option):
            setattr(head, option, -1)
