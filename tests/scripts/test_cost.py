"""make cost, through its entry point, and the estimate it makes of what was counted."""

import json

import pytest
import torch

from mcan.cost.hours import GPU, GPUS, Assumptions
from mcan.cost.step_cost import Cost
from scripts.cost import main
from tests.small_models import run_here

SMALL = ["model=tiny", "words=50", "answers=9", "features=5", "grid=[8,10]", "largest_grid=[8,11]"]
SMALL += ["question_length=3"]  # an LSTM is counted word by word


def cost(*overrides):
    return run_here(main, *SMALL, *overrides, quiet=[])


def test_what_is_printed_is_what_the_file_holds(tmp_path):
    output = tmp_path / "cost.json"
    code, printed, error = cost("gpus=[1,4]", f"output={output}")
    assert (code, error) == (0, "")
    written = json.loads(output.read_text())
    assert f"{written['parameters'] / 1e6:.2f} M" in printed
    assert f"{written['step']['kernels']:,}" in printed
    head = written["head_kernels"]
    assert f"multimodal head {head['training']} kernels; at test time {head['test']}" in printed
    assert written["val_feature_bytes"] == 40504 * 80 * 5 * 2
    assert written["checkpoint_bytes"] == 12 * written["parameters"]
    assert set(written["hours"]) == set(GPUS)
    for row in written["hours"].values():
        assert list(row) == ["1", "4"]
        assert all(f"{hours:.1f} {limit}" in printed for hours, limit in row.values())


def test_an_output_that_cannot_be_written_is_rejected_before_anything_is_counted(tmp_path):
    (tmp_path / "page.md").write_text("no block\n")
    for setting, message in {
        f"output={tmp_path}": "is a folder; name the file to write",
        f"document={tmp_path}": "is a folder; name the file to write",
        f"document={tmp_path / 'page.md'}": "page.md needs one block between",
    }.items():
        code, printed, error = cost("gpus=[1]", setting)
        assert (code, printed) == (2, "")
        assert message in error


def test_settings_reach_the_count(tmp_path):
    def written(*overrides):
        output = tmp_path / f"{len(list(tmp_path.iterdir()))}.json"
        assert cost("gpus=[1]", f"output={output}", *overrides)[0] == 0
        return json.loads(output.read_text())

    plain = written()
    assert plain["precision"] == "bfloat16"
    assert written("runtime.precision=float32")["step"]["bytes"] > plain["step"]["bytes"]
    discrete = written("attention=discrete")
    assert discrete["step"]["kernels"] < plain["step"]["kernels"] - 100
    assert discrete["head_kernels"]["training"] < 20 < plain["head_kernels"]["training"] < 414
    assert written("optim.batch_size=128")["step"]["flops"] == 2 * plain["step"]["flops"]
    halves = written("runtime.micro_batches=2")["step"]
    assert halves["memory_bytes"] < 0.7 * plain["step"]["memory_bytes"]
    assert plain["largest_step"]["flops"] > plain["step"]["flops"]


@pytest.mark.parametrize(
    ("counted", "num_gpus", "feature_bytes", "seconds", "limit"),
    [
        ({"flops": 10**12}, 1, 0, 2.0, "compute"),
        ({"flops": 10**12, "dtype": torch.float32}, 1, 0, 4.0, "compute"),
        ({"bytes": 10**11}, 1, 0, 2.0, "compute"),
        ({"flops": 10**12, "bytes": 10**11}, 1, 0, 4.0, "compute"),
        ({"flops": 10**12, "kernels": 10**6}, 1, 0, 10.0, "compute"),
        ({"flops": 6 * 10**10}, 2, 0, 0.12, "compute"),
        ({"flops": 6 * 10**10}, 4, 0, 0.15, "exchange"),  # nearly twice over every link
        ({"flops": 6 * 10**10}, 4, 10**9, 0.5, "loading"),
    ],
)
def test_the_longest_part_limits_a_step(counted, num_gpus, feature_bytes, seconds, limit):
    """Its kernels take their arithmetic and their traffic, or their launches if longer."""
    gpu = GPU(half=1.0, single=0.5, bandwidth=100)
    assumed = Assumptions(utilisation=0.5, launch=10, network=10.0, disk=2.0)
    counted = {"flops": 0, "bytes": 0, "kernels": 0, "dtype": torch.bfloat16, **counted}
    dtype = counted.pop("dtype")
    step = Cost(**counted, memory_bytes=0)
    found = assumed.time_step(step, gpu, dtype, num_gpus, 10**9, feature_bytes)
    assert found == (pytest.approx(seconds), limit)
