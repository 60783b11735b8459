"""The kernels that CUDA would choose, on a device that computes shapes alone.

On `device="meta"` torch forms attention matrices, keeps dropout's masks as numbers and knows no
autocast. A GPU does none of this, and its memory and its traffic depend on it.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

# CUDA's autocast lists, as far as this model meets them
LOW_PRECISION = {"linear", "matmul", "__matmul__", "bmm", "scaled_dot_product_attention"}
FULL_PRECISION = {"layer_norm", "softmax", "binary_cross_entropy_with_logits"}


class GPUKernels(TorchFunctionMode):
    """While it is entered, torch runs as under CUDA's autocast to `dtype`, with fused kernels.

    The LSTM stays in float32. What else the model computes in float32 outside autocast is cast: the
    last layer of the scores and the context, a small part of a step.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in LOW_PRECISION | FULL_PRECISION:
            dtype = self.dtype if name in LOW_PRECISION else torch.float32
            args, kwargs = tree_map(lambda value: cast(value, dtype), (args, kwargs))
        if func is functional.scaled_dot_product_attention:
            return attend_fused(*args, **kwargs)
        if func is functional.dropout:
            return drop_fused(*args, **kwargs)
        return func(*args, **kwargs)


def cast(value: Any, dtype: torch.dtype) -> Any:
    """A tensor of numbers in a dtype; float64 stays, as under autocast."""
    wanted = isinstance(value, Tensor) and value.is_floating_point()
    return value.to(dtype) if wanted and value.dtype is not torch.float64 else value


def attend_fused(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, dropout_p: float
) -> Tensor:
    """Flash attention in 16 bits without a mask, else the memory-efficient kernel."""
    if attn_mask is None and query.element_size() == 2:
        return torch.ops.aten._scaled_dot_product_flash_attention(query, key, value, dropout_p)[0]
    if attn_mask is not None:  # what torch does to a mask before it calls the kernel
        bias = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill(~attn_mask, -torch.inf)
        attn_mask = bias.expand(*query.shape[:3], key.shape[2])
    return torch.ops.aten._scaled_dot_product_efficient_attention(
        query, key, value, attn_mask, torch.is_grad_enabled(), dropout_p
    )[0]


def drop_fused(value: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    """Dropout that keeps one byte per number for the backward pass."""
    return torch.ops.aten.native_dropout(value, p, True)[0] if training and p > 0 else value
