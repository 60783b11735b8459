"""What a computation consists of: its kernels, their FLOPs and bytes, and the peak of memory."""

import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

# They allocate or rename and touch no number; the schema shows all other views.
WITHOUT_WORK = {"empty", "empty_like", "empty_strided", "new_empty", "_unsafe_view", "detach"}


class OperationLog(TorchDispatchMode):
    """Counts the operations on tensors of one device while it is entered.

    `flops` are those of matrix products (2 for a multiplication and an addition); `num_bytes` are
    read and written, as if nothing stayed in a cache; `peak_bytes` is the most memory that was
    allocated at once, without that of the `known` tensors. On `device="meta"`, which computes
    shapes alone, a model of any size is counted in a second. Use it with gradients or under
    `no_grad`; inference mode hides what an operation consists of.
    """

    def __init__(self, device: str = "meta", known: Iterable[Tensor] = ()) -> None:
        super().__init__()
        self.device = device
        self.kernels = self.flops = self.num_bytes = self.live_bytes = self.peak_bytes = 0
        self.known = [tensor.untyped_storage() for tensor in known]
        self.storages = {id(storage) for storage in self.known}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        results = [each for each in tree_leaves(out) if isinstance(each, Tensor)]
        if results and results[0].device.type == self.device:
            for result in results:
                self._hold(result.untyped_storage())
            if not func.is_view and func._schema.name.removeprefix("aten::") not in WITHOUT_WORK:
                used = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
                formula = flop_registry.get(func._overloadpacket)  # of matrix products alone
                self.kernels += 1
                self.flops += int(formula(*args, **kwargs, out_val=out)) if formula else 0
                self.num_bytes += sum(map(count_bytes, [*used, *results]))
        return out

    def _hold(self, storage: torch.UntypedStorage) -> None:
        """Count a storage from its first appearance until it is freed."""
        key, num_bytes = id(storage), storage.nbytes()
        if key not in self.storages:
            self.storages.add(key)
            self.live_bytes += num_bytes
            self.peak_bytes = max(self.peak_bytes, self.live_bytes)
            weakref.finalize(storage, self._free, key, num_bytes)

    def _free(self, key: int, num_bytes: int) -> None:
        self.storages.remove(key)
        self.live_bytes -= num_bytes


def count_bytes(tensor: Tensor) -> int:
    """The bytes of a tensor; an expanded one is read once."""
    return min(tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes())
