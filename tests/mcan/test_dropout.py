"""Dropout on a CPU and what is computed under it, against the formulas with the same masks."""

import pytest
import torch

from mcan.dropout import LEVELS, Dropout, as_kept, draw_quarters, kept_scale, num_dropped
from mcan.dropped_attention import attend
from mcan.layers import GuidedAttention, MultiHeadAttention


def wide(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_the_asked_share_is_dropped_and_the_mean_stays(p):
    torch.manual_seed(0)
    count = 400_000
    kept = Dropout(p)(torch.ones(count))
    deviation = (p * (1 - p) / count) ** 0.5
    assert (kept == 0).double().mean().item() == pytest.approx(p, abs=5 * deviation)
    assert kept.mean().item() == pytest.approx(1, abs=5 * deviation / (1 - p))
    assert set(kept.unique().tolist()) == {0.0, torch.tensor(kept_scale(p)).item()}
    assert num_dropped(p) / LEVELS == pytest.approx(p, abs=1e-5)


def test_entries_of_one_word_are_dropped_independently():
    torch.manual_seed(0)
    dropped = (as_kept(draw_quarters((100_000, 4)), 0.3, torch.float64) == 0).double()
    correlation = torch.corrcoef(dropped.mT)
    assert (correlation - torch.eye(4)).abs().max() < 0.02
    neighbours = torch.corrcoef(torch.stack([dropped.flatten()[:-1], dropped.flatten()[1:]]))
    assert abs(neighbours[0, 1]) < 0.01


def test_masks_come_from_torchs_generator_and_each_is_another():
    module, x = Dropout(0.5), torch.ones(1000)
    torch.manual_seed(3)
    first, second = module(x), module(x)
    torch.manual_seed(3)
    assert torch.equal(module(x), first)
    assert not torch.equal(first, second)


def test_nothing_is_dropped_in_evaluation_and_all_at_one():
    x = torch.randn(50)
    assert torch.equal(Dropout(0.5).eval()(x), x)
    assert torch.equal(Dropout(0.0)(x), x)
    assert (Dropout(1.0)(x) == 0).all()


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("num_queries", [5, 9])
def test_attention_and_its_gradients_equal_the_formula_under_the_same_mask(masked, num_queries):
    query, key, value = (wide(2, 3, n, 4, seed=s) for s, n in enumerate((num_queries, 5, 5)))
    mask = None
    if masked:
        mask = torch.tensor([[True] * 5, [True, True, True, False, False]])[:, None, None]
    torch.manual_seed(1)
    found = attend(query, key, value, mask, 0.3)
    torch.manual_seed(1)
    kept = as_kept(draw_quarters((2, 3, num_queries, 5)), 0.3, torch.float64)
    scores = query @ key.mT / 2
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    expected = (scores.softmax(-1) * kept * kept_scale(0.3)) @ value
    assert 0.5 < kept.mean() < 0.9
    torch.testing.assert_close(found, expected)
    pairs = [
        torch.autograd.grad(out.square().sum(), (query, key, value)) for out in (found, expected)
    ]
    for one, other in zip(*pairs, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("masked", [False, True])
def test_folding_the_memory_into_the_projections_changes_no_result_and_no_gradient(masked):
    torch.manual_seed(0)
    folded = GuidedAttention(32, 4, 0.0).double()
    plain = MultiHeadAttention(32, 4, 0.0).double()
    plain.load_state_dict(folded.state_dict())
    query, memory = wide(3, 20, 32), wide(3, 4, 32, seed=1)
    assert folded._pays(query, memory)
    mask = None
    if masked:
        mask = (torch.arange(4) < torch.tensor([[4], [1], [3]]))[:, None, None]
    results = [module(query, memory, mask) for module in (folded, plain)]
    torch.testing.assert_close(*results)
    gradients = [
        torch.autograd.grad(out.square().sum(), (query, memory, *module.parameters()))
        for out, module in zip(results, (folded, plain), strict=True)
    ]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


def test_a_long_memory_and_reduced_precision_keep_the_plain_order():
    module = GuidedAttention(32, 4, 0.0)
    query = torch.randn(2, 20, 32)
    assert not module._pays(query, torch.randn(2, 5, 32))
    assert not module._pays(query.bfloat16(), torch.randn(2, 4, 32).bfloat16())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not module._pays(query, torch.randn(2, 4, 32))


def test_dropout_acts_on_the_folded_weights_too():
    torch.manual_seed(0)
    module = GuidedAttention(32, 4, 0.4)
    query, memory = torch.randn(2, 20, 32), torch.randn(2, 4, 32)
    whole = module.eval()(query, memory, None)
    module.train()
    with torch.no_grad():
        draws = torch.stack([module(query, memory, None) for _ in range(600)])
    error = draws.std(0) / 600**0.5
    assert not torch.equal(draws[0], draws[1])
    assert ((draws.mean(0) - whole).abs() / error).mean() < 1.2
