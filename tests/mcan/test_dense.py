import pytest
import torch
from torch import nn

from mcan.dense import Dense


@pytest.fixture
def layers():
    """Ours, and torch's with the same weights."""
    torch.manual_seed(0)
    dense, linear = Dense(512, 256), nn.Linear(512, 256)
    linear.load_state_dict(dense.state_dict())
    return dense, linear


@pytest.mark.parametrize("shape", [(300, 512), (3, 100, 512), (2, 3, 50, 512)])
@torch.no_grad()
def test_it_gives_what_a_linear_layer_gives(layers, shape):
    dense, linear = layers
    x = torch.randn(shape)
    assert dense._pays(x)
    torch.testing.assert_close(dense(x), linear(x), atol=2e-6, rtol=1e-5)
    assert dense(x).is_contiguous()


@torch.no_grad()
def test_positions_need_not_lie_side_by_side(layers):
    dense, linear = layers
    x = torch.randn(4, 512, 100).mT
    assert dense._pays(x)
    torch.testing.assert_close(dense(x), linear(x), atol=2e-6, rtol=1e-5)


def test_it_is_torchs_own_where_gradients_are_needed(layers):
    dense, linear = layers
    x = torch.randn(300, 512, requires_grad=True)
    assert not dense._pays(x)
    assert torch.equal(dense(x), linear(x))


@torch.no_grad()
def test_it_is_torchs_own_for_little_work_and_in_other_precisions(layers):
    dense, _ = layers
    assert not dense._pays(torch.randn(200, 512))
    assert not Dense(512, 128)._pays(torch.randn(300, 512))
    assert not dense._pays(torch.randn(300, 512, dtype=torch.float64))
    with torch.autocast("cpu", torch.bfloat16):
        assert not dense._pays(torch.randn(300, 512))
    assert dense.to("meta")(torch.randn(300, 512, device="meta")).shape == (300, 256)
