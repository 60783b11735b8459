"""make cost, through its entry point, and the estimate it makes of what was counted."""

import json

import pytest
import torch

from mcan.cost.hours import GPU, GPUS, Assumptions
from mcan.cost.operations import Operation
from mcan.cost.step_cost import Cost
from scripts.cost import main
from tests.small_models import run_here

SMALL = ["model=tiny", "words=50", "answers=9", "features=5", "grid=[8,10]", "largest_grid=[8,11]"]


def cost(*overrides):
    return run_here(main, *SMALL, *overrides, quiet=[])


def test_what_is_printed_is_what_the_file_holds(tmp_path):
    output = tmp_path / "cost.json"
    code, printed, error = cost("gpus=[1,4]", f"output={output}")
    assert (code, error) == (0, "")
    written = json.loads(output.read_text())
    assert f"{written['parameters'] / 1e6:.2f} M" in printed
    assert f"{written['step']['kernels']:,}" in printed
    assert written["val_feature_bytes"] == 40504 * 80 * 5 * 2
    assert written["checkpoint_bytes"] == 12 * written["parameters"]
    assert set(written["hours"]) == set(GPUS)
    for row in written["hours"].values():
        assert list(row) == ["1", "4"]
        assert all(f"{hours:.1f} {limit}" in printed for hours, limit in row.values())


def test_settings_reach_the_count(tmp_path):
    def written(*overrides):
        output = tmp_path / f"{len(list(tmp_path.iterdir()))}.json"
        assert cost("gpus=[1]", f"output={output}", *overrides)[0] == 0
        return json.loads(output.read_text())

    plain = written()
    assert plain["precision"] == "bfloat16"
    assert written("runtime.precision=float32")["step"]["bytes"] > plain["step"]["bytes"]
    assert written("attention=discrete")["step"]["kernels"] < plain["step"]["kernels"] - 100
    assert written("optim.batch_size=128")["step"]["flops"] == 2 * plain["step"]["flops"]
    halves = written("runtime.micro_batches=2")["step"]
    assert halves["memory_bytes"] < 0.7 * plain["step"]["memory_bytes"]
    assert plain["largest_step"]["flops"] > plain["step"]["flops"]


@pytest.mark.parametrize(
    ("flops", "num_bytes", "dtype", "launch", "seconds"),
    [
        (10**12, 0, torch.bfloat16, 0, 2.0),
        (10**12, 0, torch.float32, 0, 4.0),
        (10**12, 0, torch.float64, 0, 20.0),
        (0, 10**11, torch.bfloat16, 0, 2.0),
        (10**12, 10**12, torch.bfloat16, 0, 20.0),
        (0, 0, torch.bfloat16, 10, 1e-5),
    ],
)
def test_a_kernel_takes_its_arithmetic_its_traffic_or_its_launch_whichever_is_longest(
    flops, num_bytes, dtype, launch, seconds
):
    gpu = GPU(half=1.0, single=0.5, double=0.1, bandwidth=100)
    assumed = Assumptions(utilisation=0.5, launch=launch, network=10.0, disk=2.0)
    work = Cost((Operation("mm", flops, num_bytes, dtype),), 0)
    assert assumed.time_kernels(work, gpu) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("num_gpus", "feature_bytes", "seconds", "limit"),
    [
        (1, 0, 0.12, "compute"),
        (2, 0, 0.12, "compute"),
        (4, 0, 0.15, "exchange"),  # gradients pass every link nearly twice
        (4, 10**9, 0.5, "loading"),
    ],
)
def test_the_longest_part_limits_a_step(num_gpus, feature_bytes, seconds, limit):
    gpu = GPU(half=1.0, single=1.0, double=1.0, bandwidth=100)
    assumed = Assumptions(utilisation=1.0, launch=0, network=10.0, disk=2.0)
    work = Cost((Operation("mm", 12 * 10**10, 0, torch.bfloat16),), 0)
    found = assumed.time_step(work, gpu, num_gpus, 10**9, feature_bytes)
    assert found == (pytest.approx(seconds), limit)
