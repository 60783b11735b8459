"""What a computation consists of: the floating-point operations and the bytes of every kernel."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

# They allocate or rename and touch no number; the schema shows all other views.
WITHOUT_WORK = {"empty", "empty_like", "empty_strided", "new_empty", "_unsafe_view", "detach"}


@dataclass(frozen=True)
class Operation:
    """One kernel. FLOPs are those of matrix products (2 for a multiplication and an addition)."""

    name: str
    flops: int
    num_bytes: int  # read and written, as if nothing stayed in a cache
    dtype: torch.dtype  # of the first result


class OperationLog(TorchDispatchMode):
    """Writes down every operation on tensors of one device while it is entered.

    `device="meta"` computes shapes alone, so that a model of any size is counted in a second.
    Use it with gradients or under `no_grad`; inference mode hides what an operation consists of.
    """

    def __init__(self, device: str = "meta") -> None:
        super().__init__()
        self.device = device
        self.operations: list[Operation] = []

    def __torch_dispatch__(
        self,
        func: Any,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        results = [each for each in tree_leaves(out) if isinstance(each, Tensor)]
        if results and results[0].device.type == self.device and does_work(func):
            operands = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
            self.operations.append(
                Operation(
                    func._schema.name.removeprefix("aten::"),
                    count_flops(func, args, kwargs, out),
                    sum(map(count_bytes, operands)) + sum(map(count_bytes, results)),
                    results[0].dtype,
                )
            )
        return out


def does_work(func: Any) -> bool:
    """Whether an operation touches numbers, not shapes alone."""
    return not func.is_view and func._schema.name.removeprefix("aten::") not in WITHOUT_WORK


def count_flops(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> int:
    """The FLOPs of an operation by torch's own formulas; 0 for what is no matrix product."""
    formula: Callable[..., Any] | None = flop_registry.get(func._overloadpacket)
    return 0 if formula is None else int(formula(*args, **kwargs, out_val=out))


def count_bytes(tensor: Tensor) -> int:
    """The bytes of a tensor; an expanded one is read once."""
    return min(tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes())


def add_flops(operations: Sequence[Operation]) -> int:
    """The FLOPs of all operations."""
    return sum(operation.flops for operation in operations)


def add_bytes(operations: Sequence[Operation]) -> int:
    """The bytes of all operations."""
    return sum(operation.num_bytes for operation in operations)
