"""Whole runs on a GPU: killed and resumed, bit-identical."""

import pytest
import torch

from mcan.checkpoint import load_checkpoint
from tests.small_runs import (
    assert_same,
    end_state,
    finish,
    kill,
    settings,
    start,
    wait_for_step,
)

# tests/scripts/test_train.py has the same test for the CPU.
pytestmark = [pytest.mark.cuda, pytest.mark.filterwarnings("ignore:a constant image")]


def run(words, *more, processes=1):
    code, printed = finish(start([*words, *more], processes))
    assert code == 0, printed
    return printed


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("num_processes", [1, 2])
def test_a_killed_and_resumed_run_is_bit_identical(
    small_dataset, tmp_path, precision, num_processes
):
    """With runtime.deterministic=true, dropout and the multimodal head."""
    if num_processes > torch.cuda.device_count():
        pytest.skip("fewer than two GPUs")
    more = ["runtime.device=cuda", "runtime.deterministic=true", f"runtime.precision={precision}"]
    words = settings(small_dataset, tmp_path, *more)
    run(words, "name=whole", processes=num_processes)
    again = [*words, "name=killed", "runtime.checkpoint_every_minutes=0"]
    process = start(again, num_processes)
    wait_for_step(tmp_path / "killed", 4, process)
    kill(process)
    newest = load_checkpoint(max((tmp_path / "killed").glob("step_*.pt")))
    total = end_state(tmp_path / "whole")["progress"]["global_step"]
    assert 0 < newest["progress"]["global_step"] < total
    run(again, "resume=true", processes=num_processes)
    assert_same(end_state(tmp_path / "killed"), end_state(tmp_path / "whole"))


@pytest.mark.parametrize("init", ["uniform", "weighted"])
def test_two_runs_with_one_seed_are_bit_identical(small_dataset, tmp_path, init):
    """Nothing in a run depends on time; otherwise the test above could pass by chance."""
    more = ["runtime.device=cuda", "runtime.deterministic=true", "optim.epochs=1"]
    words = settings(small_dataset, tmp_path, *more, f"attention.init={init}")
    for name in ("first", "second"):
        run(words, f"name={name}")
    assert_same(end_state(tmp_path / "first"), end_state(tmp_path / "second"))
