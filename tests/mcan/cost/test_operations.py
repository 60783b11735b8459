"""FLOPs, bytes and memory of known operations, against counts by hand."""

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from mcan.cost.operations import OperationLog

META = torch.device("meta")


def logged(work, device="meta", known=()):
    log = OperationLog(device, known)
    with log:
        work()
    return log


def lstm_flops(batch, tokens, inputs, hidden):
    """Four gates, each from the input and from the state before, at every token."""
    return batch * tokens * 4 * 2 * hidden * (inputs + hidden)


def test_a_linear_layer_and_an_lstm_are_counted_as_by_hand():
    linear = nn.Linear(7, 5, bias=False, device=META)
    x = torch.empty(3, 7, device=META, requires_grad=True)
    product = logged(lambda: linear(x))
    assert (product.kernels, product.flops) == (1, 2 * 3 * 7 * 5)
    assert product.num_bytes == 4 * (3 * 7 + 7 * 5 + 3 * 5)
    lstm = nn.LSTM(6, 5, batch_first=True, device=META)
    y = torch.empty(2, 4, 6, device=META, requires_grad=True)
    assert logged(lambda: lstm(y)).flops == lstm_flops(2, 4, 6, 5)
    out = lstm(y)[0]
    # twice the forward pass; the first state is zeros, whose gradient nobody needs
    first_state = 2 * 2 * 4 * 5 * 5
    backward = logged(lambda: out.sum().backward())
    assert backward.flops == 2 * lstm_flops(2, 4, 6, 5) - first_state


def test_the_log_agrees_with_the_counter_of_torch():
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, device=META)
    x = torch.empty(3, 9, 16, device=META)
    with FlopCounterMode(display=False) as counter:
        layer(x).sum().backward()
    log = logged(lambda: layer(x).sum().backward())
    assert log.flops == counter.get_total_flops() > 0


def test_views_and_allocations_are_not_counted_and_expanded_tensors_are_read_once():
    x = torch.empty(4, 6, device=META)
    assert logged(lambda: torch.empty(9, device=META)).kernels == 0
    assert logged(lambda: x.t().reshape(6, 4)[1:].unsqueeze(0)).kernels == 0
    row = torch.empty(1, 6, device=META).expand(4, 6)
    added = logged(lambda: x + row)
    assert (added.kernels, added.flops, added.num_bytes) == (1, 0, 4 * (24 + 6 + 24))


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_memory_is_the_most_that_was_held_at_once_beside_what_is_known(device):
    x = torch.ones(100, device=device)

    def work():
        held = x + 1
        for _ in range(3):
            held = held * 2  # two at once
        assert held.view(10, 10).shape == (10, 10)

    log = logged(work, device, known=[x])
    assert log.peak_bytes == 2 * 400
    assert log.live_bytes == 0


def test_memory_holds_what_the_backward_pass_needs_and_the_gradients():
    layers = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2)).to(META)
    x = torch.empty(1000, 8, device=META)
    log = OperationLog(known=[*layers.parameters(), x])
    with log:
        out = layers(x)
        assert log.live_bytes == 4 * 1000 * (4 + 2)  # the ReLU's output and the result
        out.sum().backward()
        del out
    assert log.live_bytes == sum(4 * p.numel() for p in layers.parameters())


def test_only_the_device_that_is_asked_for_is_counted():
    def work():
        torch.ones(3, 3) @ torch.ones(3, 3)

    assert logged(work).kernels == 0
    assert logged(work, "cpu").flops == 2 * 27


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_bytes_depend_on_the_dtype(dtype):
    x = torch.empty(3, 3, dtype=dtype, device=META)
    assert logged(lambda: x @ x).num_bytes == 27 * x.element_size()
