"""Models with compiled layers beside plain ones: what they compute, how many graphs they make."""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch._dynamo.utils import counters

import attention
import mcan
from mcan.runtime.compilation import compile_layers

# the layers of tests/small_runs.py, so that the graphs of its runs serve here too
SIZES = mcan.Sizes(
    num_words=30, num_answers=11, num_features=7, embedding=8, hidden=16, num_layers=2,
    num_heads=2, pooling=16, output=32,
)  # fmt: skip
SHAPES = [
    (10, 8), (8, 10), (4, 4), (19, 32), (32, 19), (7, 2), (6, 5), (5, 3), (1, 12), (13, 1),
    (11, 11), (3, 17),
]  # fmt: skip


def build_pair(
    device: torch.device, backend: str = "inductor", dropout: float = 0.0
) -> list[mcan.MCAN]:
    """A compiled model and a plain one of the same weights."""
    heads = [attention.build("discrete") for _ in range(2)]
    models = [mcan.MCAN(SIZES, head, dropout).to(device) for head in heads]
    models[1].load_state_dict(models[0].state_dict())
    compile_layers(models[0], device, backend)
    return models


def batch(number: int, shapes: list[tuple[int, int]], device: torch.device) -> tuple[Any, ...]:
    """Features, grid and tokens of a batch, other ones for every number."""
    generator = torch.Generator().manual_seed(number)
    grid = attention.Grid.of(shapes, device=device)
    features = torch.randn(len(grid), grid.num_cells, SIZES.num_features, generator=generator)
    tokens = torch.randint(1, SIZES.num_words, (len(grid), 14), generator=generator)
    tokens[0, 5:] = 0
    return features.to(device), grid, tokens.to(device)


def differentiate(model: mcan.MCAN, inputs: tuple[Any, ...]) -> tuple[Tensor, dict[str, Tensor]]:
    """Logits, and the gradients of their squares' sum."""
    model.train().zero_grad()
    logits = model(*inputs)
    logits.square().sum().backward()
    return logits.detach(), {name: p.grad.clone() for name, p in model.named_parameters()}


def assert_alike(models: list[mcan.MCAN], inputs: tuple[Any, ...]) -> None:
    """Both models compute the same, in training with its gradients, and in inference."""
    logits, gradients = differentiate(models[0], inputs)
    expected, expected_gradients = differentiate(models[1], inputs)
    torch.testing.assert_close(logits, expected, atol=1e-5, rtol=1e-4)
    for name, gradient in expected_gradients.items():
        torch.testing.assert_close(gradients[name], gradient, atol=1e-4, rtol=1e-3, msg=name)
    with torch.inference_mode():
        answers = [model.eval()(*inputs) for model in models]
    torch.testing.assert_close(*answers, atol=1e-5, rtol=1e-4)


@contextlib.contextmanager
def counting() -> Iterator[list[int]]:
    """How many graphs are made inside."""
    before: int = counters["stats"]["unique_graphs"]
    made: list[int] = []
    yield made
    made.append(counters["stats"]["unique_graphs"] - before)


@contextlib.contextmanager
def own_graphs() -> Iterator[None]:
    """Graphs of others do not count inside, nor do its graphs or its settings stay."""
    settings = ("recompile_limit", "specialize_float", "optimize_ddp")
    unchanged = {name: getattr(torch._dynamo.config, name) for name in settings}
    torch._dynamo.reset()
    try:
        with torch._dynamo.config.patch(unchanged):
            yield
    finally:
        torch._dynamo.reset()
