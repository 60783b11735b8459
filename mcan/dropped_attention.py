"""Scaled dot-product attention with dropout on its weights, for a CPU.

torch's fused kernel for the CPU knows no dropout, and what it does instead forms all weights of a
batch and passes over them again and again. Here they are formed image by image, in place and in the
cache, and the backward pass needs no sum over them: Σ_n w_n ∂w_n is the product of the output with
its gradient.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import scaled_dot_product_attention

from mcan.dropout import as_kept, draw_quarters, draws_cheaply, kept_scale

# Shape letters: B batch, h heads, M queries, N keys, d width of a head.


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, p: float) -> Tensor:
    """(B, h, M, d): softmax(query·keyᵀ/√d), entries dropped with probability p, times value.

    query (B, h, M, d), key and value (B, h, N, d); mask (B, 1, 1, N) is True where there is a key.
    """
    if 0 < p < 1 and draws_cheaply(query):
        output: Tensor = DroppedAttention.apply(query, key, value, mask, p)
        return output
    return scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=p)


class DroppedAttention(torch.autograd.Function):
    """The explicit formula and its derivative, one element of the batch at a time."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, p: float
    ) -> Tensor:
        query = query * (1 / math.sqrt(query.shape[-1]))
        key, value = key.contiguous(), value.contiguous()
        batch, heads, length, _ = query.shape
        weights = query.new_empty(batch, heads, length, key.shape[2])
        quarters = draw_quarters(weights.shape)
        output = torch.empty_like(query)
        for b in range(batch):
            torch.bmm(query[b], key[b].mT, out=weights[b])
            if mask is not None:
                weights[b].masked_fill_(~mask[b], -torch.inf)
            torch.softmax(weights[b], -1, out=weights[b])
            kept = as_kept(quarters[b], p, weights.dtype).mul_(weights[b])
            torch.bmm(kept, value[b], out=output[b])
        output *= kept_scale(p)
        ctx.save_for_backward(query, key, value, weights, quarters, output)
        ctx.p = p
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, weights, quarters, output = ctx.saved_tensors
        total = (gradient * output).sum(-1, keepdim=True)  # (B, h, M, 1)
        gradient = gradient * kept_scale(ctx.p)
        by_query, by_key, by_value = map(torch.empty_like, (query, key, value))
        changed = torch.empty_like(weights[0])
        for b in range(len(query)):
            kept = as_kept(quarters[b], ctx.p, weights.dtype)
            torch.bmm(gradient[b], value[b].mT, out=changed)
            changed.mul_(kept).sub_(total[b]).mul_(weights[b])
            torch.bmm(kept.mul_(weights[b]).mT, gradient[b], out=by_value[b])
            torch.bmm(changed, key[b], out=by_query[b])
            torch.bmm(changed.mT, query[b], out=by_key[b])
        return by_query.mul_(1 / math.sqrt(query.shape[-1])), by_key, by_value, None, None
