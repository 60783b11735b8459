"""torch.compile for the layers and for EM: one graph for all grid shapes."""

from collections.abc import Callable
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn

from attention import Mixture, MultimodalHead
from attention.em import Iteration, em_iteration
from mcan.network.model import MCAN

# Each kind of layer has one graph for training and one for inference, and the decoder's another two
# for a mask over the cells. A few more may come from numbers that happen to be equal in the batch
# that is traced. Beyond this limit layers go on uncompiled, and torch warns of it.
MOST_GRAPHS = 16


def compile_layers(model: MCAN, device: torch.device, backend: str = "inductor") -> None:
    """Compile every layer in place; parameters and their names stay what they are.

    All layers of a kind share their graphs, and the numbers of questions and of cells are symbols
    in them: the many grid shapes of a dataset need no graph each.
    """
    if backend == "inductor":
        check_compiler(device)
    torch._dynamo.config.recompile_limit = max(MOST_GRAPHS, torch._dynamo.config.recompile_limit)
    # The first layers must see tensors like those that the other layers see, or they need graphs of
    # their own: an LSTM's output is laid out by time, and a projection's is a view.
    model.lstm.register_forward_hook(lay_out_by_question)
    model.project_features.register_forward_hook(copy_output)
    model.splits_first_layer = False  # a compiled layer is one graph
    # under DDP, torch.compile would cut it into parts as large as what DDP exchanges at a time
    torch._dynamo.config.optimize_ddp = False
    for layer in [*model.encoder, *model.decoder]:
        layer.forward = MethodType(compile_forward(type(layer).forward, backend), layer)
    if isinstance(model.pool_image.head, MultimodalHead):
        model.pool_image.head.iterate = compile_iteration(backend)


def compile_iteration(backend: str) -> Iteration:
    """A compiled iteration of EM, most of a head's operations; a single image takes the plain one.

    In training a graph each for the first iteration, which has no gradient, and the others, at test
    time one for all; the numbers of components, of images and of cells are symbols in them.
    """
    compiled = compile_for_all_sizes(contiguous_iteration, backend, fullgraph=True)

    def iterate(theta: Mixture, *others: Any) -> Mixture:
        if len(theta.pi) == 1:
            return em_iteration(theta, *others)
        return compiled(theta.contiguous(), *others)

    return iterate


def contiguous_iteration(*inputs: Any) -> Mixture:
    """Θ with the strides that every other has: for others torch.compile would make more graphs."""
    return em_iteration(*inputs).contiguous()


def compile_forward(plain: Callable[..., Tensor], backend: str) -> Callable[..., Tensor]:
    """A layer's compiled `forward`; a single question takes the plain one.

    A size of one is not a symbol to torch.compile, and would need graphs of its own.
    """
    compiled = compile_for_all_sizes(plain, backend)

    def forward(layer: nn.Module, x: Tensor, *others: Tensor | None) -> Tensor:
        return (plain if len(x) == 1 else compiled)(layer, x, *others)

    return forward


def compile_for_all_sizes(
    plain: Callable[..., Any], backend: str, fullgraph: bool = False
) -> Callable[..., Any]:
    """A function whose graphs have symbols for sizes, and the code's constants as they are.

    Else each constant would be a symbol too: one more input, and longer to generate code for.
    """
    torch._dynamo.config.specialize_float = True
    return torch.compile(plain, dynamic=True, fullgraph=fullgraph, backend=backend)


def lay_out_by_question(
    module: nn.Module, inputs: object, outputs: tuple[Tensor, object]
) -> tuple[Tensor, object]:
    """Make the words (B, T, H) that an LSTM gives contiguous."""
    return outputs[0].clone(memory_format=torch.contiguous_format), outputs[1]


def copy_output(module: nn.Module, inputs: object, output: Tensor) -> Tensor:
    """The same numbers in a tensor that is not a view of another."""
    return output.clone()


def check_compiler(device: torch.device) -> None:
    """Compile something small, so that what is missing is said before a run begins."""
    try:
        torch.compile(torch.special.expm1, dynamic=True)(torch.ones(3, device=device))
    except RuntimeError as error:
        needed = "a C++ compiler" if device.type == "cpu" else "Triton and a C compiler"
        reason = " ".join((str(error) or type(error).__name__).split())[:200]
        raise ValueError(
            f"runtime.compile=true needs {needed} and Python's headers, but a trial failed "
            f"({reason}); install what is missing, or leave runtime.compile=false"
        ) from None
