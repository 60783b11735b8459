"""Compiled layers on a GPU: the results of plain layers, few graphs, and no synchronisation.

tests/mcan/runtime/test_compilation.py shows the same on the CPU.
"""

import pytest
import torch

from data.batching.sampler import MicroBatch
from mcan.runtime.compilation import compile_layers
from tests.gpu.device_steps import MULTIMODAL, start, synchronisation_forbidden, take_pinned
from tests.mcan.runtime.compiled_models import (
    SHAPES,
    assert_alike,
    batch,
    build_pair,
    counting,
    own_graphs,
)
from tests.mcan.training.small_steps import GLOBAL_BATCHES

pytestmark = [pytest.mark.cuda, pytest.mark.filterwarnings("ignore:a constant image")]

GPU = torch.device("cuda", 0)
ROWS = GLOBAL_BATCHES[0]


@pytest.fixture(autouse=True)
def _own_graphs():
    with own_graphs():
        yield


def test_results_and_gradients_equal_those_of_plain_layers_on_many_grids():
    models = build_pair(GPU)
    with counting() as made:
        for number, shape in enumerate(SHAPES):
            assert_alike(models, batch(number, [shape] * (2 + number % 4), GPU))
        for number, shape in enumerate(SHAPES[:4]):
            assert_alike(models, batch(number, [shape], GPU))
            assert_alike(models, batch(number, [shape, (3, 3), shape], GPU))
    # six and the trial; masks with aligned rows may need separate graphs
    assert made[0] <= 9


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_compiled_step_learns_without_synchronisation(dtype):
    model, stepper = start(GPU, MULTIMODAL, dtype=dtype, dropout=0.1)
    compile_layers(model, GPU)
    batches = [take_pinned(MicroBatch(ROWS, 1 / len(ROWS)), GPU)]
    results = [stepper.step(batches, step, rate=2e-3, stop=False).read() for step in range(20)]
    with synchronisation_forbidden(GPU):
        pending = [stepper.step(batches, step, rate=2e-3, stop=False) for step in range(20, 40)]
    results += [each.read() for each in pending]
    assert not any(result.is_nonfinite for result in results)
    assert results[-1].loss < 0.9 * results[0].loss
