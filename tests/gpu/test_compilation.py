"""Compiled layers on a GPU: the plain results, few graphs, and steps that wait for nothing.

tests/mcan/test_compilation.py shows the same on the CPU.
"""

import pytest
import torch

from data.batches import Piece
from mcan.compilation import compile_layers
from tests.gpu.device_steps import refusing_to_wait, start, take_pinned
from tests.mcan.compiled_models import SHAPES, assert_alike, batch, build_pair, counting, own_graphs
from tests.mcan.small_steps import GLOBAL_BATCHES

pytestmark = [pytest.mark.cuda, pytest.mark.filterwarnings("ignore:a constant image")]

GPU = torch.device("cuda", 0)
ROWS = GLOBAL_BATCHES[0]


@pytest.fixture(autouse=True)
def _own_graphs():
    with own_graphs():
        yield


def test_results_and_gradients_are_the_plain_ones_over_many_grids():
    models = build_pair(GPU)
    with counting() as made:
        for number, shape in enumerate(SHAPES):
            assert_alike(models, batch(number, [shape] * (2 + number % 4), GPU))
        for number, shape in enumerate(SHAPES[:4]):
            assert_alike(models, batch(number, [shape], GPU))
            assert_alike(models, batch(number, [shape, (3, 3), shape], GPU))
    # six and the trial; masks whose rows are aligned may need graphs of their own
    assert made[0] <= 9


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_compiled_step_learns_and_waits_for_nothing(dtype):
    model, stepper = start(GPU, "multimodal", dtype=dtype, dropout=0.1)
    compile_layers(model, GPU)
    batches = [take_pinned(Piece(ROWS, 1 / len(ROWS)), GPU)]
    readings = [stepper.step(batches, step, rate=2e-3, stop=False).read() for step in range(20)]
    with refusing_to_wait(GPU):
        reports = [stepper.step(batches, step, rate=2e-3, stop=False) for step in range(20, 40)]
    readings += [report.read() for report in reports]
    assert not any(reading.is_bad for reading in readings)
    assert readings[-1].loss < 0.9 * readings[0].loss
