"""No step and no evaluation batch makes the CPU wait for the GPU, traced on a fake CUDA device."""

import json
import subprocess
import sys

import pytest

from tests.small_runs import ROOT

WAITING = ("a list as an index", "a tensor from the CPU", "a number read back", "a blocking copy")


@pytest.fixture(scope="module")
def traced():
    done = subprocess.run(
        [sys.executable, "-m", "tests.fake_cuda.trace"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("case", WAITING)
def test_what_waits_is_seen(traced, case):
    assert traced[case]["waits"]


@pytest.mark.parametrize("part", ["training", "evaluation"])
def test_nothing_waits_for_the_device(traced, part):
    cases = {name: found for name, found in traced.items() if name.startswith(part)}
    assert len(cases) >= 36
    assert min(found["operations"] for found in cases.values()) > 100
    assert {name: found["waits"] for name, found in cases.items() if found["waits"]} == {}


def test_the_lstm_computes_in_float32(traced):
    """Under autocast to bfloat16 it would be in float16, and its gradients without a scale."""
    dtypes = {tuple(found["lstm"]) for name, found in traced.items() if name not in WAITING}
    assert dtypes == {("torch.float32",)}
