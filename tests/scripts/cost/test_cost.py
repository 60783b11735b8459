"""make cost, through its entry point, and the estimate it makes of what was counted."""

import json

import pytest
import torch

from mcan.operations import Operation
from scripts.cost.__main__ import main
from scripts.cost.estimate import Estimate, time_exchange, time_operations
from scripts.cost.machines import GPU, GPUS, Assumptions
from tests.small_models import run_here

SMALL = ["model=tiny", "words=50", "answers=9", "features=5", "grid=[8,10]", "largest_grid=[8,11]"]
ASSUMED = Assumptions(0.5, 5.0, 4, 10.0, 2.0, 2.0, 1.0)


def cost(*overrides):
    return run_here(main, *SMALL, *overrides, quiet=[])


def test_what_is_printed_is_what_the_file_holds(tmp_path):
    output = tmp_path / "cost.json"
    code, printed, error = cost("gpus=[1,4]", f"output={output}")
    assert (code, error) == (0, "")
    written = json.loads(output.read_text())
    assert f"{written['parameters'] / 1e6:.2f} M" in printed
    assert f"{written['step']['kernels']:,}" in printed
    assert set(written["gpus"]) == {gpu.name for gpu in GPUS}
    one, four = written["gpus"]["A100 40 GB"]
    assert (one["num_gpus"], four["num_gpus"]) == (1, 4)
    assert one["exchange"] == 0 < four["exchange"]
    assert one["bottleneck"] in ("compute", "loading")
    assert f"{one['run_hours']:.1f} h" in printed
    assert written["step"]["feature_bytes"] == 64 * 80 * 5 * 2
    assert written["checkpoint_bytes"] == 12 * written["parameters"]


def test_settings_reach_the_count(tmp_path):
    def written(*overrides):
        output = tmp_path / f"{len(list(tmp_path.iterdir()))}.json"
        assert cost("gpus=[1]", f"output={output}", *overrides)[0] == 0
        return json.loads(output.read_text())

    plain = written()
    assert plain["precision"] == "bfloat16"
    assert written("runtime.precision=float32")["step"]["bytes"] > plain["step"]["bytes"]
    assert written("attention=discrete")["step"]["kernels"] < plain["step"]["kernels"] - 100
    larger = written("optim.batch_size=128")
    assert larger["step"]["flops"] == 2 * plain["step"]["flops"]
    halves = written("runtime.micro_batches=2")
    assert halves["step"]["flops"] == plain["step"]["flops"]
    assert halves["step"]["activation_bytes"] < 0.6 * plain["step"]["activation_bytes"]
    assert halves["step"]["feature_bytes"] == plain["step"]["feature_bytes"]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("gpus=[128]", "more GPUs than questions"),
        ("gpus=[]", "gpus is []"),
        ("assume.utilisation=2", "assume.utilisation is 2"),
        ("assume.disk=0", "assume.disk is 0"),
        ("grid=[4]", "grid is [4]"),
        ("words=0", "words is 0"),
        ("runtime.precision=int8", "runtime.precision must be"),
        ("model.num_heads=5", "cannot be divided"),
    ],
)
def test_a_mistake_ends_in_one_sentence(override, message):
    code, printed, error = cost(override)
    assert code == 2
    assert message in error
    assert error.count("\n") == 1
    assert printed == ""


def test_a_kernel_takes_its_arithmetic_its_traffic_or_its_launch_whichever_is_longest():
    gpu = GPU("x", 1, half=1.0, single=0.5, double=0.1, bandwidth=100)

    def seconds(flops, num_bytes, dtype=torch.bfloat16, launch=0.0):
        operation = Operation("mm", flops, num_bytes, dtype)
        return time_operations([operation], gpu, utilisation=0.5, launch=launch)

    assert seconds(10**12, 0) == pytest.approx(2.0)
    assert seconds(10**12, 0, torch.float32) == pytest.approx(4.0)
    assert seconds(10**12, 0, torch.float64) == pytest.approx(20.0)
    assert seconds(0, 10**11) == pytest.approx(2.0)
    assert seconds(10**12, 10**12) == pytest.approx(20.0)
    assert seconds(0, 0, launch=1e-5) == pytest.approx(1e-5)


def test_gradients_pass_the_slowest_link_nearly_twice():
    assert time_exchange(10**9, 1, ASSUMED) == 0
    assert time_exchange(10**9, 2, ASSUMED) == pytest.approx(0.1)
    assert time_exchange(10**9, 4, ASSUMED) == pytest.approx(0.15)
    assert time_exchange(10**9, 8, ASSUMED) == pytest.approx(2 * 7 / 8 / 2)


def test_the_longest_part_is_the_bottleneck_and_decides_the_hours():
    estimate = Estimate(4, 0.1, 0.2, 0.3, validation=100, steps_per_epoch=1000, num_epochs=2)
    assert estimate.bottleneck == "loading"
    assert estimate.epoch_hours == pytest.approx((300 + 100) / 3600)
    assert estimate.run_hours == pytest.approx(2 * 400 / 3600)


def test_the_table_marks_a_gpu_whose_memory_does_not_suffice():
    code, printed, _ = cost("gpus=[1]", "assume.spare_memory=20")
    assert code == 0
    rows = {line.split("  ")[1].strip(): line for line in printed.splitlines() if " ms" in line}
    assert rows["V100 16 GB"].endswith("20 GB: no")
    assert rows["A100 40 GB"].endswith("20.0 GB")
