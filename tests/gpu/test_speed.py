"""The speed of the paper's training step, for the report of `make test-gpu`."""

import pytest
import torch

from benchmarks.parts.estimates import PAPER, compare, measure_steps
from mcan.cost.hours import find_gpu
from mcan.runtime.precision import choose_dtype
from scripts.bench import TOY_STEPS
from scripts.cost import main
from tests.gpu.report import FIGURE

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")


def test_a_step_from_the_loader_is_timed(device, record_property):
    """No speed is expected; on the CPU a toy is timed."""
    is_cuda = device.type == "cuda"
    workload, dtype = PAPER if is_cuda else TOY_STEPS, choose_dtype("auto", device)
    figures = measure_steps(device, dtype, workload)
    gpu = find_gpu(torch.cuda.get_device_name(device)) if is_cuda else None
    (paper,) = main.compose([])
    for each in compare(figures, workload, gpu, dtype, paper.assume):
        record_property(FIGURE, each.line())
    assert min(figures.milliseconds) > 0
    assert (figures.peak_bytes > 0) == is_cuda
