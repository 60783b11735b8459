"""Two processes step like one: NCCL on two GPUs, gloo on the CPU."""

import os

import pytest
import torch
import torch.multiprocessing

from mcan.processes import World, choose_device, join_world, leave_world
from tests.gpu.device_steps import take_steps
from tests.mcan.together import free_port
from tests.small_runs import assert_same

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")


def take_part(rank, size, port, kind, folder):
    """One process, as torchrun would start it."""
    torch.set_num_threads(1)
    place = {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": rank, "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in place.items()})
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    world = join_world(kind, timeout_minutes=2)
    try:
        result = take_steps(world, num_micro_batches=2)
        result["backend"] = torch.distributed.get_backend()
        result["exchanged"] = [world.share(rank + 10), *world.gather(rank)]
        torch.save(result, folder / f"{rank}.pt")
        world.wait()
    finally:
        leave_world()


@pytest.mark.parametrize("kind", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_two_processes_take_the_steps_of_one(kind, tmp_path):
    """Slices are unequal, and one process has fillers; in float64."""
    if kind == "cuda" and torch.cuda.device_count() < 2:
        pytest.skip("fewer than two GPUs")
    torch.multiprocessing.spawn(take_part, (2, free_port(), kind, tmp_path), nprocs=2)
    two = [torch.load(tmp_path / f"{rank}.pt", weights_only=False) for rank in range(2)]
    one = take_steps(World(0, 1, choose_device(kind, 0)), num_micro_batches=1)
    assert_same(two[0]["weights"], two[1]["weights"])
    for result in two:
        assert result["backend"] == {"cpu": "gloo", "cuda": "nccl"}[kind]
        assert result["exchanged"] == [10, 0, 1]
        for name, weight in one["weights"].items():
            # Adam divides gradients by their size: rounding shows most where they are nearly zero
            torch.testing.assert_close(result["weights"][name], weight, atol=1e-7, rtol=0, msg=name)
        for step, gradients in enumerate(one["gradients"]):
            for name, gradient in gradients.items():
                torch.testing.assert_close(
                    result["gradients"][step][name], gradient, atol=1e-9, rtol=0, msg=name
                )
        for own, other in zip(result["losses"], one["losses"], strict=True):
            assert own == pytest.approx(other, rel=1e-6)
