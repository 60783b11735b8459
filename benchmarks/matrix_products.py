"""The rate of the machine's own matrix products, and the share of it that other work reaches."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from benchmarks.timing import Work

PRODUCT = "float32 product of 2048³"
SIZE, NUM_PRODUCTS = 2048, 3  # per call: a call takes a few tenths of a second on two cores


def products(device: torch.device) -> Work:
    """A few products of large square matrices, one after the other."""
    left, right, out = (torch.rand(SIZE, SIZE, device=device) for _ in range(3))

    def multiply() -> None:
        for _ in range(NUM_PRODUCTS):
            torch.mm(left, right, out=out)

    return multiply


def count_flops(work: Work) -> int:
    """The operations of all matrix products of one call: 2 for a multiplication and an addition."""
    # the one product of the models that torch's counter does not know
    fused = {torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: count_attention}
    with FlopCounterMode(display=False, custom_mapping=fused) as counter:
        work()
    return counter.get_total_flops()


def count_attention(
    query: torch.Size, key: torch.Size, value: torch.Size, *_: Any, **__: Any
) -> int:
    """Fused attention of these shapes (…, length, features)."""
    return int(sdpa_flop_count(query, key, value))


def product_shares(
    num_flops: int, times: Mapping[str, Sequence[float]], name: str
) -> tuple[float, ...]:
    """The rate of a work of `num_flops` over that of the products, round by round."""
    most = NUM_PRODUCTS * 2 * SIZE**3
    pairs = zip(times[PRODUCT], times[name], strict=True)
    return tuple(num_flops / most * product / taken for product, taken in pairs)
