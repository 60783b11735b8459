"""A whole training step of MCAN-small on VQA-v2's mix of grids: ours, and as it was published.

Both take the same step: dropout, loss, gradients, Adam. Ours has batches of one grid each, as the
trainer makes them; the published one has mixed batches, padded to 608 cells.
"""

import itertools
from typing import Any

import numpy as np
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

import attention
import mcan
from benchmarks.baseline_process import BaselineProcess
from benchmarks.matrix_products import PRODUCT, count_flops, product_shares, products
from benchmarks.measurement import Part, Row, as_measurements, ratios
from benchmarks.reference.plain_mcan import PlainMCAN
from benchmarks.sample_features import NUM_ANSWERS, NUM_FEATURES, draw_shapes
from benchmarks.timing import Work, interleave
from data.batching.batch import Batch
from data.text.word_lists import QUESTION_LENGTH
from mcan.runtime.distributed import World
from mcan.training.step import Stepper, make_optimizer

MOST_CELLS = 608
LARGE_BATCH = [(19, 32)] * 8  # on which densities are compared, and a step with matrix products
NUM_WORDS = 20000
SMALL = mcan.Sizes(NUM_WORDS, NUM_ANSWERS, NUM_FEATURES)


def make_batch(shapes: list[tuple[int, int]], num_cells: int, sizes: mcan.Sizes) -> Batch:
    """Questions about made-up images of these shapes, zeros after their cells."""
    generator = torch.Generator().manual_seed(sum(height * width for height, width in shapes))
    features = torch.rand(len(shapes), num_cells, sizes.num_features, generator=generator)
    for row, (height, width) in zip(features, shapes, strict=True):
        row[height * width :] = 0
    tokens = torch.randint(1, sizes.num_words, (len(shapes), QUESTION_LENGTH), generator=generator)
    tokens[:, 8:] = 0
    targets = torch.rand(len(shapes), sizes.num_answers, generator=generator).gt(0.999).float()
    ids = torch.arange(len(shapes))
    return Batch(features.half(), tuple(shapes), None, tokens, targets, ids, ids, 1 / len(shapes))


def make_batches(count: int, batch_size: int, sizes: mcan.Sizes) -> tuple[list[Batch], list[Batch]]:
    """Batches of one grid each, and mixed and padded ones."""
    generator = np.random.default_rng(0)
    shapes = draw_shapes(count, generator)
    uniform = [make_batch([shape] * batch_size, shape[0] * shape[1], sizes) for shape in shapes]
    mixed = [make_batch(draw_shapes(batch_size, generator), MOST_CELLS, sizes) for _ in uniform]
    return uniform, mixed


def our_steps(
    head: str, batches: list[Batch], sizes: mcan.Sizes, device: torch.device, **options: Any
) -> Work:
    """Steps of our model with a head, on batches of one grid each."""
    torch.manual_seed(0)
    model = mcan.MCAN(sizes, attention.build(head, **options)).to(device).train()
    stepper = Stepper(model, make_optimizer(model, (0.9, 0.98), 1e-9), World(0, 1, device))
    numbered = enumerate(itertools.cycle(batches))

    def step() -> None:
        number, batch = next(numbered)
        stepper.step([batch], number, 1e-4, stop=False)

    return step


def plain_steps(count: int, batch_size: int, sizes: mcan.Sizes, device: torch.device) -> Work:
    """Steps of the published model on mixed and padded batches, with Adam as torch has it."""
    batches = itertools.cycle(make_batches(count, batch_size, sizes)[1])
    torch.manual_seed(0)
    model = PlainMCAN(sizes).to(device).train()
    optimizer = torch.optim.Adam(model.parameters(), 1e-4, (0.9, 0.98), 1e-9)

    def step() -> None:
        batch = next(batches)
        optimizer.zero_grad()
        logits = model(batch.features.float().to(device), batch.tokens.to(device))
        assert batch.targets is not None
        targets = batch.targets.to(device)
        loss = binary_cross_entropy_with_logits(logits, targets, reduction="sum")
        (loss * batch.weight).backward()
        optimizer.step()

    return step


def measure_large_steps(device: torch.device, rounds: int, sizes: mcan.Sizes) -> Part:
    """Rows for paraboloids in place of Gaussians, and for a step's share of the machine's rate.

    Both densities draw the same K in each step.
    """
    batches = [make_batch(LARGE_BATCH, MOST_CELLS, sizes)]
    works = {
        density: our_steps("multimodal", batches, sizes, device, density=density)
        for density in ("gaussian", "paraboloid")
    }
    num_flops = count_flops(works["gaussian"])
    works[PRODUCT] = products(device)
    times = interleave(works, device, rounds, "training steps, densities")
    added = ratios(times["paraboloid"], times["gaussian"])
    share = product_shares(num_flops, times, "gaussian")
    return Part(
        [
            Row("whole training step, paraboloids", "the same step, Gaussians", "≤ 1.1", added),
            Row("training step of MCAN-small, FLOP/s", PRODUCT, "≥ 0.6", share),
        ],
        as_measurements(f"step of {len(LARGE_BATCH)} questions", times),
    )


def measure(
    device: torch.device, rounds: int = 7, batch_size: int = 4, sizes: mcan.Sizes = SMALL
) -> Part:
    """Rows for the head's part in a step, for the step against the published one, and densities."""
    uniform, _ = make_batches(rounds + 1, batch_size, sizes)
    with BaselineProcess(plain_steps, rounds + 1, batch_size, sizes, device) as plain:
        works: dict[str, Work] = {
            "discrete": our_steps("discrete", uniform, sizes, device),
            "multimodal": our_steps("multimodal", uniform, sizes, device),
            "plain MCAN": plain,
        }
        times = interleave(works, device, rounds, "training steps")
    against = "plain MCAN: padded to 608 cells, explicit attention and LayerNorm, mixed batches"
    added = ratios(times["multimodal"], times["discrete"])
    gain = ratios(times["plain MCAN"], times["discrete"])
    steps = Part(
        [
            Row("whole training step, multimodal", "the same step, discrete", "≤ 1.05", added),
            Row("whole training step, small, dropout kept", against, "≥ 1.5", gain),
        ],
        as_measurements(f"step of {batch_size} questions", times),
    )
    return steps + measure_large_steps(device, max(1, rounds // 2), sizes)
