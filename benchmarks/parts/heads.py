"""How much the attention heads add to a model: against its score network, and the plain paper.

And how much a sparse normaliser adds to a head: against the same head with softmax.

All of it in one run, interleaved, at B = 16, 19×32 cells and D = 512, so that what disturbs the
machine disturbs all alike.
"""

from typing import get_args

import torch
from torch import Tensor

import attention
from attention.heads.registry import name_variant
from attention.normalisers import Normaliser
from attention.seeding import restart_draw, training_draw
from benchmarks.measurement import Measurement, Part, Row, as_measurements, ratios
from benchmarks.reference import plain_attention
from benchmarks.timing import Work, interleave
from mcan.network.pooling import ScoreNetwork

BATCH, SIZE, HIDDEN = 16, (19, 32), 512
K_MAX, RESTARTS, TRAIN_ITERATIONS, TEST_ITERATIONS, LAM = 4, 3, 5, 10, 5.0
CALLS = 5  # per turn: a head takes a few milliseconds
PARABOLOIDS = "multimodal, paraboloid"  # as reports call it


def draw_cells(
    size: tuple[int, int], batch: int, device: torch.device
) -> tuple[Tensor, Tensor, attention.Grid]:
    """Scores and features of cells, and their grid: what a head takes."""
    generator = torch.Generator().manual_seed(0)
    grid = attention.Grid.of([size] * batch, device=device)
    scores = (3 * torch.randn(batch, grid.num_cells, generator=generator)).to(device)
    return scores, torch.randn(batch, grid.num_cells, HIDDEN, generator=generator).to(device), grid


class Inputs:
    """The scores, features and score network that all works share."""

    def __init__(self, device: torch.device, batch: int) -> None:
        self.device = device
        self.scores, self.values, self.grid = draw_cells(SIZE, batch, device)
        self.positions = self.grid.positions[0].float()
        self.network = ScoreNetwork(HIDDEN, HIDDEN, dropout=0.1).to(device)

    def leaves(self) -> tuple[Tensor, Tensor]:
        return self.scores.detach().requires_grad_(), self.values.detach().requires_grad_()


def list_starts(device: torch.device) -> list[Tensor]:
    """The initial means (k, 2) of every fit at test time, in the order of the plain paper."""
    sizes, uniforms = restart_draw(0, K_MAX, RESTARTS, torch.device("cpu"))
    starts = [start[:k].float() for start, k in zip(uniforms, sizes, strict=True)]
    return [start.to(device) for start in starts]


def list_heads() -> dict[str, dict[str, str]]:
    """Every head with every normaliser, and paraboloids, by the names that reports have."""
    heads = [
        {"name": name, "normaliser": normaliser}
        for normaliser in get_args(Normaliser)
        for name in attention.available()
    ]
    heads.append({"name": "multimodal", "normaliser": "softmax", "density": "paraboloid"})
    return {name_variant(**options): options for options in heads}


def works_at_test_time(inputs: Inputs) -> dict[str, Work]:
    """Forward passes without gradients."""
    heads = {name: attention.build(**options).eval() for name, options in list_heads().items()}
    network = inputs.network.eval()
    starts = list_starts(inputs.device)
    forward = torch.no_grad()
    works: dict[str, Work] = {
        name: forward(lambda head=head: head(inputs.scores, inputs.values, inputs.grid))
        for name, head in heads.items()
    }
    works["score network"] = forward(lambda: network(inputs.values))
    works["plain"] = forward(
        lambda: plain_attention.attend_at_test_time(
            inputs.scores, inputs.values, inputs.positions, starts, TEST_ITERATIONS, LAM
        )
    )
    return works


def works_in_training(inputs: Inputs) -> dict[str, Work]:
    """Forward and backward passes; K = 4 where there is a choice."""
    network = inputs.network.train()
    means = training_draw(0, 0, K_MAX)[1][0].float().to(inputs.device)

    def head_work(options: dict[str, str]) -> Work:
        head = attention.build(**options).train()
        num_components = K_MAX if options["name"] == "multimodal" else None

        def work() -> None:
            scores, values = inputs.leaves()
            out = head(scores, values, inputs.grid, num_components=num_components)
            out.context.sum().backward()

        return work

    def network_work() -> None:
        network(inputs.leaves()[1]).sum().backward()

    def plain_work() -> None:
        scores, values = inputs.leaves()
        plain_attention.attend_in_training(
            scores, values, inputs.positions, means, TRAIN_ITERATIONS
        ).sum().backward()

    works = {name: head_work(options) for name, options in list_heads().items()}
    return {**works, "score network": network_work, "plain": plain_work}


def measure(device: torch.device, rounds: int = 11, batch: int = BATCH) -> Part:
    """Rows for test time and for training."""
    inputs = Inputs(device, batch)
    at_test_time, training = (
        interleave(works, device, rounds, f"heads, {phase}", calls=CALLS)
        for phase, works in [
            ("test time", works_at_test_time(inputs)),
            ("training", works_in_training(inputs)),
        ]
    )
    selection = "test-time selection, k_max = 4, overhead over discrete"
    training_head = "training head, K = 4, forward and backward, overhead over discrete"
    forward = "the score network's forward pass on the same cells"
    both = "the score network's forward and backward pass"
    return Part(
        [
            Row(selection, forward, "≤ 0.5", overhead(at_test_time)),
            Row(training_head, both, "≤ 0.12", overhead(training)),
            *normaliser_rows(training),
        ],
        describe(at_test_time, "test time") + describe(training, "training, K = 4"),
    )


def normaliser_rows(times: dict[str, list[float]]) -> list[Row]:
    """What a sparse normaliser adds to a head in training: the ratio to the head with softmax."""
    softmax = get_args(Normaliser)[0]
    rows = []
    for name, options in list_heads().items():
        if options["normaliser"] != softmax:
            plain = options["name"]
            work = f"training head, forward and backward, {name}"
            rows.append(Row(work, f"{plain}, softmax", "≤ 1.10", ratios(times[name], times[plain])))
    return rows


def overhead(times: dict[str, list[float]], head: str = "multimodal") -> tuple[float, ...]:
    """What a head adds to discrete attention, in score networks, round by round."""
    added = [a - b for a, b in zip(times[head], times["discrete"], strict=True)]
    return ratios(added, times["score network"])


def describe(times: dict[str, list[float]], phase: str) -> list[Measurement]:
    """All times, the gain over the plain paper, and what each density adds to discrete."""
    gain = ratios(times["plain"], times["multimodal"])
    name = f"{phase}: plain transcription / multimodal"
    added = [
        Measurement(f"{phase}: {head}, overhead", overhead(times, head), "score networks")
        for head in ("multimodal", PARABOLOIDS)
    ]
    return [*as_measurements(phase, times), Measurement(name, gain, "×"), *added]
