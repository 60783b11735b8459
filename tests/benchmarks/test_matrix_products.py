"""FLOPs of matrix products are counted as on paper."""

import pytest
import torch
from torch.nn.functional import linear, scaled_dot_product_attention

from benchmarks.matrix_products import (
    NUM_PRODUCTS,
    PRODUCT,
    SIZE,
    count_flops,
    product_shares,
    products,
)


@torch.inference_mode()
def answer() -> None:
    query = torch.rand(2, 3, 5, 4)  # batch, heads, length, features
    key = torch.rand(2, 3, 7, 4)
    scaled_dot_product_attention(query, key, key)
    linear(query, torch.rand(9, 4))


def test_linear_layers_and_fused_attention_are_counted():
    attention = 2 * (2 * 2 * 3 * 5 * 7 * 4)  # scores, and sums of values
    assert count_flops(answer) == attention + 2 * (2 * 3 * 5) * 4 * 9


def test_the_products_have_all_of_their_own_rate():
    num_flops = count_flops(products(torch.device("cpu")))
    assert num_flops == NUM_PRODUCTS * 2 * SIZE**3
    times = {PRODUCT: [10.0, 20.0], "half as fast": [20.0, 40.0]}
    assert product_shares(num_flops, times, PRODUCT) == pytest.approx((1, 1))
    assert product_shares(num_flops, times, "half as fast") == pytest.approx((0.5, 0.5))
