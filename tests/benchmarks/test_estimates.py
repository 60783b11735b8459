"""The figures of a GPU beside the estimates of `make cost`, with stand-ins for the GPU."""

import pytest
import torch

from benchmarks.parts import estimates
from benchmarks.parts.estimates import PAPER, StepFigures, compare, measure_steps
from mcan.cost.hours import GPUS, find_gpu
from scripts.bench import TOY_STEPS
from scripts.cost import count_run, main

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def cost():
    (settings,) = main.compose(["gpus=[1]"])
    return settings


@pytest.fixture(scope="module")
def step():
    return PAPER.count(torch.bfloat16)


def test_the_step_is_the_one_that_make_cost_counts(cost, step):
    assert (PAPER.batch_size, PAPER.grid) == (cost.optim.batch_size, tuple(cost.grid))
    counted = count_run(cost)["step"]
    assert (step.flops, step.memory_bytes) == (counted["flops"], counted["memory_bytes"])


def test_figures_stand_beside_the_estimates_of_the_gpu(cost, step):
    figures = StepFigures((40.0, 50.0, 60.0), (10.0, 20.0, 30.0), 9_000_000_000)
    gpu = find_gpu("NVIDIA A100-SXM4-80GB")
    found = compare(figures, PAPER, gpu, torch.bfloat16, cost.assume)
    seconds = cost.assume.time_step(step, GPUS["A100 80 GB"], torch.bfloat16, 1, 0, 0)[0]
    time, speed, memory, share = (each.line() for each in found)
    assert time.startswith("training step, 64 questions, 506 cells, bfloat16 ")
    assert time.endswith(f" 50 ms  (40 to 60); make cost: {1000 * seconds:.3g}")
    assert " 1280 questions/s  (1067 to 1600); make cost: " in speed
    assert memory.endswith(f" 9 GB; make cost: {step.memory_bytes / 1e9:.3g}")
    assert share.endswith(" 20 %  (10 to 30)")


def test_times_of_a_gpu_unknown_to_make_cost_have_no_estimate(cost):
    found = compare(StepFigures((40.0,), (1.0,), 1), TOY_STEPS, None, torch.float16, cost.assume)
    assert [each.estimate is None for each in found] == [True, True, False, True]


def test_steps_from_the_loader_are_timed_on_any_device(cost):
    figures = measure_steps(CPU, torch.float32, TOY_STEPS)
    assert len(figures.milliseconds) == len(figures.loading_shares) == TOY_STEPS.rounds
    assert min(figures.milliseconds) > 0
    assert all(0 <= share < 100 for share in figures.loading_shares)
    assert figures.speeds(4) == tuple(4000 / each for each in figures.milliseconds)
    assert estimates.measure(CPU, cost.assume).details == []
