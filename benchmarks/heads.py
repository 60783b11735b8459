"""How much the attention heads add to a model: against its score network, and the plain paper.

All of it in one run, interleaved, at B = 16, 19×32 cells and D = 512, so that what disturbs the
machine disturbs all alike.
"""

import torch
from torch import Tensor

import attention
from attention.seeding import restart_draw, training_draw
from benchmarks.measurement import Measurement, Part, Row, as_measurements, ratios
from benchmarks.reference import plain_attention
from benchmarks.timing import Work, interleave
from mcan.network.pooling import ScoreNetwork

BATCH, SIZE, HIDDEN = 16, (19, 32), 512
K_MAX, RESTARTS, TRAIN_ITERATIONS, TEST_ITERATIONS, LAM = 4, 3, 5, 10, 5.0
CALLS = 5  # per turn: a head takes a few milliseconds


def draw_cells(
    size: tuple[int, int], batch: int, device: torch.device
) -> tuple[Tensor, Tensor, attention.Grid]:
    """Scores and features of cells, and their grid: what a head takes."""
    generator = torch.Generator().manual_seed(0)
    grid = attention.Grid.of([size] * batch, device=device)
    scores = (3 * torch.randn(batch, grid.num_cells, generator=generator)).to(device)
    return scores, torch.randn(batch, grid.num_cells, HIDDEN, generator=generator).to(device), grid


class Inputs:
    """What all works get."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.scores, self.values, self.grid = draw_cells(SIZE, BATCH, device)
        self.positions = self.grid.positions[0].float()
        self.network = ScoreNetwork(HIDDEN, HIDDEN, dropout=0.1).to(device)

    def leaves(self) -> tuple[Tensor, Tensor]:
        return self.scores.detach().requires_grad_(), self.values.detach().requires_grad_()


def list_starts(device: torch.device) -> list[Tensor]:
    """The initial means (k, 2) of every fit at test time, in the order of the plain paper."""
    sizes, uniforms = restart_draw(0, K_MAX, RESTARTS, torch.device("cpu"))
    starts = [start[:k].float() for start, k in zip(uniforms, sizes, strict=True)]
    return [start.to(device) for start in starts]


def test_time_works(inputs: Inputs) -> dict[str, Work]:
    """Forward passes without gradients."""
    heads = {name: attention.build(name).eval() for name in attention.available()}
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


def training_works(inputs: Inputs) -> dict[str, Work]:
    """Forward and backward passes; K = 4 where there is a choice."""
    network = inputs.network.train()
    means = training_draw(0, 0, K_MAX)[1][0].float().to(inputs.device)

    def head_work(name: str) -> Work:
        head = attention.build(name).train()
        num_components = K_MAX if name == "multimodal" else None

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

    works = {name: head_work(name) for name in attention.available()}
    return {**works, "score network": network_work, "plain": plain_work}


def measure(device: torch.device, rounds: int = 15) -> Part:
    """Rows for test time and for training."""
    inputs = Inputs(device)
    at_test_time, training = (
        interleave(works, device, rounds, f"heads, {phase}", calls=CALLS)
        for phase, works in [
            ("test time", test_time_works(inputs)),
            ("training", training_works(inputs)),
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
        ],
        describe(at_test_time, "test time") + describe(training, "training, K = 4"),
    )


def overhead(times: dict[str, list[float]]) -> tuple[float, ...]:
    """What multimodal attention adds to discrete, in score networks, round by round."""
    added = [a - b for a, b in zip(times["multimodal"], times["discrete"], strict=True)]
    return ratios(added, times["score network"])


def describe(times: dict[str, list[float]], phase: str) -> list[Measurement]:
    """All times, and the gain over the plain paper."""
    gain = ratios(times["plain"], times["multimodal"])
    name = f"{phase}: plain transcription / multimodal"
    return [*as_measurements(phase, times), Measurement(name, gain, "×")]
