"""The multi-head attention of MCAN's layers: its names, and its weights while the model runs.

Shape letters: B batch, M queries, N keys.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from torch import Tensor

from mcan.network.layers import MultiHeadAttention
from mcan.network.model import MCAN

Receive = Callable[[str, slice, Tensor], None]  # name, rows of the batch, weights of these rows
AT_A_TIME = 1 << 24  # weights that are computed at once: 64 MB


def list_layers(model: MCAN) -> dict[str, MultiHeadAttention]:
    """Every multi-head attention by its name, in the order in which the model computes them.

    encoder.<n>.self_attention: words to words. decoder.<n>.self_attention: cells to cells.
    decoder.<n>.guided_attention: cells to words.
    """
    encoder = {
        f"encoder.{n}.self_attention": layer.attention for n, layer in enumerate(model.encoder)
    }
    decoder = {
        f"decoder.{n}.{kind}": getattr(layer, kind)
        for n, layer in enumerate(model.decoder)
        for kind in ("self_attention", "guided_attention")
    }
    return {**encoder, **decoder}


def choose_layers(model: MCAN, asked: str | Sequence[str]) -> list[str]:
    """The names that begin with one that is asked for, such as encoder.0 or decoder; or all."""
    names = list(list_layers(model))
    wanted = [asked] if isinstance(asked, str) else asked
    for each in wanted:
        if each != "all" and not any(belongs(name, each) for name in names):
            layers = ", ".join(dict.fromkeys(name.rpartition(".")[0] for name in names))
            raise ValueError(
                f"there is no layer '{each}'; name some of {layers}, one part of a layer such as "
                f"{names[-1]}, or all"
            )
    return [name for name in names if any(w == "all" or belongs(name, w) for w in wanted)]


def belongs(name: str, prefix: str) -> bool:
    """Whether a name is `prefix` or lies below it."""
    return f"{name}.".startswith(f"{prefix}.")


@contextlib.contextmanager
def watch_layers(
    model: MCAN, names: Sequence[str], receive: Receive, image_index: Tensor | None
) -> Iterator[None]:
    """Call `receive` with the weights (b, heads, M, N) of layers while the model runs on a batch.

    They come some questions at a time, so that memory holds few of them. `image_index` is the
    batch's own. The model itself is as it was when the block ends.
    """
    layers = list_layers(model)
    per_image = model.decoder[0].self_attention if model.splits_first_layer else None
    with contextlib.ExitStack() as stack:
        for name in names:
            index = image_index if layers[name] is per_image else None
            hook = partial(pass_weights, name, receive, index)
            stack.callback(layers[name].register_forward_hook(hook).remove)
        yield


@contextlib.contextmanager
def watch_question_pooling(model: MCAN) -> Iterator[list[Tensor]]:
    """A list that gets the weights (B, T) of the words when the model runs."""
    found: list[Tensor] = []
    handle = model.pool_question.register_forward_hook(
        lambda pooling, inputs, output: found.append(pooling.weights(*inputs))
    )
    try:
        yield found
    finally:
        handle.remove()


def pass_weights(
    name: str,
    receive: Receive,
    image_index: Tensor | None,
    layer: MultiHeadAttention,
    inputs: tuple[Tensor, Tensor, Tensor | None],
    output: Tensor,
) -> None:
    """Call `receive` with a layer's weights; `image_index` is given where it ran once per image."""
    x, memory, mask = inputs
    index = None if image_index is None else image_index.to(x.device)
    num_questions = len(x) if index is None else len(index)
    size = layer.num_heads * x.shape[1] * memory.shape[1]
    step = max(1, AT_A_TIME // size)
    for start in range(0, num_questions, step):
        rows = slice(start, min(start + step, num_questions))
        some = rows if index is None else index[rows]
        of_rows = None if mask is None else mask[some]
        receive(name, rows, layer.weights(x[some], memory[some], of_rows))
