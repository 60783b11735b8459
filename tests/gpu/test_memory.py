"""The memory of a head: less than another copy of the features."""

import os
import subprocess
import sys

import pytest
import torch

import attention
from mcan.cost.operations import OperationLog
from tests.attention.examples import head_variants, name_variant

BATCH, SIZE, HIDDEN = 16, (19, 32), 512
CONTINUOUS = head_variants(sorted(set(attention.available()) - {"discrete"}))
VALUES = 4 * BATCH * SIZE[0] * SIZE[1] * HIDDEN  # bytes of the cells' features in float32


def measure(device, work):
    """The peak of bytes that `work` allocates."""
    if device.type == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        work()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before
    log = OperationLog("cpu")
    with log:
        work()
    return log.peak_bytes


@pytest.fixture
def inputs(device):
    generator = torch.Generator().manual_seed(0)
    cells = SIZE[0] * SIZE[1]
    scores = (3 * torch.randn(BATCH, cells, generator=generator)).to(device)
    values = torch.randn(BATCH, cells, HIDDEN, generator=generator).to(device)
    return scores, values, attention.Grid.of([SIZE] * BATCH, device=device)


def test_the_measurement_counts_live_tensors(device):
    def hold_two_of_three():
        first = torch.zeros(1000, 1000, device=device)
        second = first + 1
        del first
        return second * 2

    assert measure(device, hold_two_of_three) == pytest.approx(8e6, rel=0.01)


def train(head, inputs, **options):
    scores, values, grid = inputs
    leaves = scores.clone().requires_grad_(), values.detach().requires_grad_()
    head.train()(*leaves, grid, **options).context.sum().backward()


def infer(head, inputs):
    with torch.no_grad():  # a log of operations does not see into inference mode
        head.eval()(*inputs)


@pytest.mark.parametrize("work", [train, infer])
@pytest.mark.parametrize("variant", CONTINUOUS, ids=name_variant)
def test_a_continuous_head_needs_less_than_another_copy_of_the_features(
    device, inputs, variant, work
):
    """In training with four components; at test time with every candidate's context."""
    name, chosen = variant
    options = {"num_components": 4} if (name, work) == ("multimodal", train) else {}
    head = attention.build(name, **chosen)
    work(head, inputs, **options)  # fills the caches
    needed = measure(device, lambda: work(head, inputs, **options))
    plain = measure(device, lambda: work(attention.build("discrete"), inputs))
    assert plain < needed < plain + VALUES


@pytest.mark.cuda
def test_the_allocator_has_segments_that_grow():
    program = """if True:
        import scripts, torch
        torch.zeros(1, device="cuda")
        print(torch.cuda.memory._snapshot()["allocator_settings"]["expandable_segments"])
    """
    environment = {name: value for name, value in os.environ.items() if "ALLOC_CONF" not in name}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert done.stdout.strip() == "True", done.stderr
