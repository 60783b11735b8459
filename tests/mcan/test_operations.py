"""FLOPs and bytes of known operations, against counts by hand."""

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from mcan.operations import OperationLog, add_bytes, add_flops

META = torch.device("meta")


def logged(work, device="meta"):
    log = OperationLog(device)
    with log:
        work()
    return log.operations


def test_a_linear_layer_is_counted_as_by_hand():
    layer = nn.Linear(7, 5, bias=False, device=META)
    x = torch.empty(3, 7, device=META, requires_grad=True)
    forward = logged(lambda: layer(x))
    assert add_flops(forward) == 2 * 3 * 7 * 5
    assert add_bytes(forward) == 4 * (3 * 7 + 7 * 5 + 3 * 5)
    out = layer(x)
    backward = logged(lambda: out.backward(torch.empty_like(out)))
    assert add_flops(backward) == 2 * (2 * 3 * 7 * 5)  # for the input and for the weights


def lstm_flops(batch, tokens, inputs, hidden):
    """Four gates, each from the input and from the state before, at every token."""
    return batch * tokens * 4 * 2 * hidden * (inputs + hidden)


def test_an_lstm_is_counted_as_by_hand_forward_and_backward():
    layer = nn.LSTM(6, 5, batch_first=True, device=META)
    x = torch.empty(2, 4, 6, device=META, requires_grad=True)
    assert add_flops(logged(lambda: layer(x))) == lstm_flops(2, 4, 6, 5)
    out = layer(x)[0]
    backward = logged(lambda: out.sum().backward())
    # twice the forward pass; the first state is zeros, whose gradient nobody needs
    first_state = 2 * 2 * 4 * 5 * 5
    assert add_flops(backward) == 2 * lstm_flops(2, 4, 6, 5) - first_state


def test_attention_is_two_products_forward():
    q = torch.empty(2, 3, 10, 8, device=META)
    k = torch.empty(2, 3, 6, 8, device=META)
    operations = logged(lambda: nn.functional.scaled_dot_product_attention(q, k, k))
    assert add_flops(operations) == 2 * (2 * 2 * 3 * 10 * 6 * 8)


def test_the_log_agrees_with_the_counter_of_torch():
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, device=META)
    x = torch.empty(3, 9, 16, device=META)
    with FlopCounterMode(display=False) as counter:
        layer(x).sum().backward()
    assert add_flops(logged(lambda: layer(x).sum().backward())) == counter.get_total_flops() > 0


def test_views_and_allocations_are_no_work_and_expanded_tensors_are_read_once():
    x = torch.empty(4, 6, device=META)
    assert logged(lambda: torch.empty(9, device=META)) == []
    assert logged(lambda: x.t().reshape(6, 4)[1:].unsqueeze(0)) == []
    row = torch.empty(1, 6, device=META).expand(4, 6)
    (added,) = logged(lambda: x + row)
    assert added.num_bytes == 4 * (24 + 6 + 24)
    assert added.flops == 0


def test_only_the_device_that_is_asked_for_is_counted():
    def work():
        torch.ones(3, 3) @ torch.ones(3, 3)

    assert logged(work) == []
    assert add_flops(logged(work, "cpu")) == 2 * 27


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_an_operation_knows_its_number_format(dtype):
    x = torch.empty(3, 3, dtype=dtype, device=META)
    (product,) = logged(lambda: x @ x)
    assert product.dtype is dtype
    assert product.num_bytes == 27 * x.element_size()
