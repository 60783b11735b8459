"""Operations that make the CPU wait for a GPU, seen as they are dispatched."""

from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

READ_BACKS = ("_local_scalar_dense", "item", "nonzero", "equal", "masked_select", "unique")
COPIES = ("_to_copy", "copy_")


class Watch(TorchDispatchMode):
    """Counts operations on CUDA, describes each one that waits, and notes the LSTM's dtype."""

    def __init__(self) -> None:
        super().__init__()
        self.num_operations = 0
        self.waits: list[str] = []
        self.lstm_dtypes: set[str] = set()

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name = operation.overloadpacket.__name__
        given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        result = operation(*args, **kwargs)
        made = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
        devices = {tensor.device.type for tensor in [*given, *made]}
        self.num_operations += "cuda" in devices
        if name == "_thnn_fused_lstm_cell":
            self.lstm_dtypes.add(str(given[0].dtype))
        if name in COPIES:
            non_blocking = bool(kwargs.get("non_blocking")) or (len(args) > 2 and bool(args[2]))
            if devices == {"cpu", "cuda"} and not non_blocking:
                self.waits.append(f"{name} between {describe(given)} and {describe(made)} blocks")
        elif name in READ_BACKS and "cuda" in devices:
            self.waits.append(f"{name} of {describe(given)} reads back")
        elif "cuda" in devices and any(is_host_array(tensor) for tensor in given):
            self.waits.append(f"{name} mixes {describe(given)}")
        return result


def is_host_array(tensor: Tensor) -> bool:
    """A CPU tensor that is more than a number, which alone may take part in a CUDA operation."""
    return tensor.device.type == "cpu" and tensor.ndim > 0


def describe(tensors: list[Tensor]) -> str:
    return ", ".join(f"{tuple(tensor.shape)} on {tensor.device.type}" for tensor in tensors)
