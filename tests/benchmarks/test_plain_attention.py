"""The baseline of the benchmark gives what the library gives: it is slow, not wrong."""

import pytest
import torch

import attention
from attention.seeding import restart_draw, training_draw
from benchmarks.reference import plain_attention

GRID = attention.Grid.of([(8, 10)] * 4)


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(4, 80, generator=generator, dtype=torch.float64)
    return scores, torch.randn(4, 80, 6, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("num_components", [2, 3, 4])
def test_training_context_and_gradient_equal_the_librarys(batch, num_components):
    scores, values = batch[0].requires_grad_(), batch[1]
    means = training_draw(0, 7, 4)[1][0, :num_components]
    plain = plain_attention.attend_in_training(scores, values, GRID.positions[0], means, 5)
    head = attention.build("multimodal").train()
    ours = head(scores, values, GRID, num_components=num_components, step=7).context
    torch.testing.assert_close(ours, plain, atol=1e-8, rtol=1e-6)
    gradients = [torch.autograd.grad(c.square().sum(), scores)[0] for c in (ours, plain)]
    torch.testing.assert_close(*gradients, atol=1e-7, rtol=1e-5)


@pytest.mark.parametrize("lam", [0.0, 0.5, 5.0])
def test_selected_size_and_context_equal_the_librarys(batch, lam):
    scores, values = batch
    sizes, uniforms = restart_draw(0, 4, 3, torch.device("cpu"))
    starts = [start[:k] for start, k in zip(uniforms, sizes, strict=True)]
    context, size = plain_attention.attend_at_test_time(
        scores, values, GRID.positions[0], starts, 10, lam
    )
    out = attention.build("multimodal", lam=lam).eval()(scores, values, GRID)
    assert torch.equal(out.mixture.num_components[:, 0], size)
    torch.testing.assert_close(out.context, context, atol=1e-7, rtol=1e-5)
