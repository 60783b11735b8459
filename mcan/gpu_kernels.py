"""The kernels that CUDA would choose, on a device that computes shapes alone.

On `device="meta"` torch takes the plain path: it forms attention matrices, keeps dropout's masks
as numbers and knows no autocast. A GPU does none of this, and its memory depends on it.
"""

from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

from attention import Head
from mcan.score import ScoreNetwork

# CUDA's autocast lists, as far as this model meets them
LOW_PRECISION = {"linear", "matmul", "__matmul__", "bmm", "lstm", "scaled_dot_product_attention"}
FULL_PRECISION = {"layer_norm", "softmax", "binary_cross_entropy_with_logits"}


class GPUKernels(TorchFunctionMode):
    """While it is entered, `model` runs as under CUDA's autocast to `dtype`, with fused kernels."""

    def __init__(self, model: nn.Module, dtype: torch.dtype) -> None:
        super().__init__()
        self.model, self.dtype = model, dtype
        self.depth = 0  # of modules that switch autocast off
        self.hooks: list[torch.utils.hooks.RemovableHandle] = []

    def __enter__(self) -> Self:
        for module in without_autocast(self.model):
            self.hooks.append(module.register_forward_pre_hook(lambda *_: self._go(1)))
            self.hooks.append(module.register_forward_hook(lambda *_: self._go(-1)))
        super().__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, trace)
        for hook in self.hooks:
            hook.remove()
        self.hooks = []

    def _go(self, change: int) -> None:
        self.depth += change

    def __torch_function__(
        self,
        func: Any,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if self.dtype is not torch.float32 and self.depth == 0:
            if name in LOW_PRECISION:
                args, kwargs = cast((args, kwargs), self.dtype)
            elif name in FULL_PRECISION:
                args, kwargs = cast((args, kwargs), torch.float32)
        if func is functional.scaled_dot_product_attention:
            return attend_fused(*args, **kwargs)
        if func is functional.dropout:
            return drop_fused(*args, **kwargs)
        return func(*args, **kwargs)


def without_autocast(model: nn.Module) -> list[nn.Module]:
    """The parts of a model that compute outside autocast: heads, and the layer of the scores."""
    heads: list[nn.Module] = [each for each in model.modules() if isinstance(each, Head)]
    return heads + [each.score for each in model.modules() if isinstance(each, ScoreNetwork)]


def cast(values: Any, dtype: torch.dtype) -> Any:
    """Arguments with their numbers in a dtype; float64 stays, as under autocast."""

    def change(value: Any) -> Any:
        wanted = isinstance(value, Tensor) and value.is_floating_point()
        return value.to(dtype) if wanted and value.dtype is not torch.float64 else value

    return tree_map(change, values)


def attend_fused(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
) -> Tensor:
    """Flash attention in 16 bits without a mask, else the memory-efficient kernel."""
    if attn_mask is None and query.element_size() == 2:
        return torch.ops.aten._scaled_dot_product_flash_attention(query, key, value, dropout_p)[0]
    if attn_mask is not None:  # what torch does to a mask before it calls the kernel
        bias = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill(~attn_mask, -torch.inf)
        attn_mask = bias.expand(*query.shape[:3], key.shape[2])
    keep_sums = torch.is_grad_enabled()
    return torch.ops.aten._scaled_dot_product_efficient_attention(
        query, key, value, attn_mask, keep_sums, dropout_p
    )[0]


def drop_fused(
    value: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout that keeps one byte a number for the backward pass."""
    return torch.ops.aten.native_dropout(value, p, True)[0] if training and p > 0 else value
