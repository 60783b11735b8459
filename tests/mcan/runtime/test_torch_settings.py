"""Settings that hold for a whole process, each looked at in a process of its own."""

import ctypes
import os
import subprocess
import sys

import pytest
import torch

from mcan.runtime.settings import Runtime
from mcan.runtime.torch_settings import choose_num_threads, seed_generators

PROGRAM = """
import resource, sys, scripts
assert "torch" not in sys.modules
import torch
print(torch._C._accelerator_getAllocatorSettings())
from mcan.runtime.settings import Runtime
from mcan.runtime.torch_settings import set_up_torch
set_up_torch(Runtime(num_threads=1))
print(torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32)

def work():
    tensors = [torch.ones(25_000_000), *(torch.ones(2_000_000) for _ in range(6))]  # 148 MB

for _ in range(3):
    work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.fixture(scope="module")
def reported():
    """What a process says that begins as a command does: memory of a GPU, TF32, pages cleared."""
    return report(PROGRAM).splitlines()


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="not glibc")
def test_freed_memory_serves_the_next_tensor_whatever_its_size(reported):
    """Without the setting, the 24,415 pages of the largest one are cleared again each time."""
    assert int(reported[2]) < 500


def test_a_run_keeps_its_threads_and_a_narrow_network_has_one():
    default = torch.get_num_threads()
    for set_to, hidden, before, expected in (
        (None, 32, None, 1),
        (None, 512, None, default),
        (None, 32, 2, 2),
        (3, 32, 2, 3),
    ):
        assert choose_num_threads(Runtime(num_threads=set_to), hidden, before) == expected


def test_seeding_draws_what_torch_itself_would():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2**63 + 5)
        expected = torch.rand(4)
        seed_generators(torch.device("cpu"), 2**63 + 5)
        assert torch.equal(torch.rand(4), expected)
        assert not torch.equal(torch.rand(4), expected)


def report(program, **variables):
    """What a program prints that begins as a command does, in an environment without settings."""
    unset = {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    return subprocess.run(
        [sys.executable, "-c", program],
        check=True, capture_output=True, text=True, env={**environment, **variables},
    ).stdout.strip()  # fmt: skip


def test_gpu_memory_grows_in_segments_and_float32_is_not_rounded_to_tf32_anywhere(reported):
    """The former is set before torch is imported: a CUDA build reads it then."""
    assert reported[:2] == ["expandable_segments:True", "False False"]


@pytest.mark.parametrize("name", ["PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"])
def test_what_the_user_set_of_gpu_memory_stays(name):
    program = """if True:
        import os, scripts
        print({each: value for each, value in os.environ.items() if "ALLOC_CONF" in each})
    """
    given = {name: "max_split_size_mb:64"}
    assert report(program, **given) == str(given)
