"""Two processes take the same steps as one: NCCL on two GPUs, gloo on the CPU."""

import pytest
import torch

from mcan.runtime.distributed import World, choose_device
from tests.gpu.device_steps import take_device_steps
from tests.mcan.runtime.together import run_together
from tests.mcan.training.small_steps import assert_same_steps
from tests.small_runs import assert_same

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")


def work(world):
    """Steps of unequal slices and fillers in float64, and what processes exchange."""
    return {
        **take_device_steps(world, num_micro_batches=2),
        "backend": torch.distributed.get_backend(),
        "exchanged": [world.broadcast(world.rank + 10), *world.gather(world.rank)],
    }


@pytest.mark.parametrize("kind", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_two_processes_take_the_same_steps_as_one(kind, tmp_path):
    if kind == "cuda" and torch.cuda.device_count() < 2:
        pytest.skip("fewer than two GPUs")
    (two,) = run_together([(2, work, ())], tmp_path, kind)
    one = take_device_steps(World(0, 1, choose_device(kind, 0)), num_micro_batches=1)
    assert_same(two[0]["weights"], two[1]["weights"])
    for result in two:
        assert result["backend"] == {"cpu": "gloo", "cuda": "nccl"}[kind]
        assert result["exchanged"] == [10, 0, 1]
        assert_same_steps(result, one, 1e-7)
