"""The processes that train together: one, or as many as torchrun started."""

import contextlib
import gc
import os
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist

# its functions have the group as a default argument if it is imported later, as DDP does
import torch.distributed.nn.functional

Result = TypeVar("Result")


@dataclass(frozen=True)
class World:
    """This process's place among all, and its device."""

    rank: int
    size: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        """Whether this is the process that writes and prints."""
        return self.rank == 0

    def broadcast(self, value: Any) -> Any:
        """The first process's value, on every process."""
        if self.size == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0, device=self._exchange_device())
        return box[0]

    def gather(self, value: Any) -> list[Any]:
        """Every process's value, in the order of ranks, on every process."""
        if self.size == 1:
            return [value]
        boxes: list[Any] = [None] * self.size
        dist.all_gather_object(boxes, value)
        return boxes

    def run_on_first(self, function: Callable[..., Result], *arguments: Any) -> Result | None:
        """Call on the first process while the others wait; its error is raised on every one."""
        result: Result | None = None
        problem: Exception | None = None
        if self.is_first:
            try:
                result = function(*arguments)
            except (ValueError, OSError) as error:
                problem = error
        problem = self.broadcast(problem)
        if problem is not None:
            raise problem
        return result

    def sum(self, tensor: torch.Tensor) -> torch.Tensor:
        """The sum of the tensor over all processes, in place; waits for nothing on a GPU."""
        if self.size > 1:
            dist.all_reduce(tensor)
        return tensor

    def barrier(self) -> None:
        """Wait until every process is here."""
        if self.size > 1:
            dist.barrier()

    def _exchange_device(self) -> torch.device:
        return self.device if dist.get_backend() == "nccl" else torch.device("cpu")


def join_world(device: str | None = None, timeout_minutes: float = 10) -> World:
    """Join the group that torchrun describes, or be alone; NCCL on CUDA, gloo elsewhere."""
    rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    place = choose_device(device, int(os.environ.get("LOCAL_RANK", "0")))
    if place.type == "cuda":
        torch.cuda.set_device(place)
    if "RANK" in os.environ and not dist.is_initialized():
        backend = "nccl" if place.type == "cuda" else "gloo"
        dist.init_process_group(backend, timeout=timedelta(minutes=timeout_minutes))
    return World(rank, size, place)


@contextlib.contextmanager
def joined_world(device: str | None, timeout_minutes: float) -> Iterator[World]:
    """Join for as long as the block lasts; a process that is lost meanwhile is an error by name."""
    world = join_world(device, timeout_minutes)
    try:
        yield world
    except BaseException as error:
        traceback.clear_frames(error.__traceback__)  # whose variables may hold the group
        reason = " ".join(str(error).split())
        is_gloo = isinstance(error, RuntimeError) and "gloo" in reason
        if world.size == 1 or not (is_gloo or isinstance(error, dist.DistError)):
            raise
        raise ConnectionAbortedError(describe_loss(world, timeout_minutes, reason)) from error
    finally:
        leave_world()


def describe_loss(world: World, timeout_minutes: float, reason: str) -> str:
    """How another process was lost; its own message or torchrun's says which one."""
    others = f"process {world.rank} of {world.size} got no reply from another process"
    if "imed out" in reason or "imeout" in reason:
        return (
            f"{others}: none within runtime.timeout_minutes={timeout_minutes:g}, so it hangs "
            f"or is slower than that; resume=true continues from the last checkpoint"
        )
    return (
        f"{others}: it has ended, or the network between them has; what it said or torchrun says "
        f"of it names the cause, and resume=true continues from the last checkpoint"
    )


def leave_world() -> None:
    """Leave the group, if there is one, and end its threads.

    Gloo's threads end with the last reference to the group; DDP's lies in a cycle. Left to the
    end of Python, a thread that still releases a tensor aborts the process.
    """
    if dist.is_initialized():
        dist.destroy_process_group()
        gc.collect()


def choose_device(name: str | None, local_rank: int) -> torch.device:
    """The device of that name; "cuda" without a number is this process's own, as is no name."""
    if not name:
        return best_device(local_rank)
    try:
        place = torch.device(name)
    except RuntimeError:
        raise ValueError(f"there is no device '{name}'; expected cpu, cuda or cuda:<n>") from None
    if place.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"the device '{name}' was asked for, but torch finds no CUDA here")
    return best_device(local_rank) if place == torch.device("cuda") else place


def best_device(local_rank: int) -> torch.device:
    """This process's own GPU where there are any, else the CPU."""
    if torch.cuda.is_available():
        return torch.device("cuda", local_rank % torch.cuda.device_count())
    return torch.device("cpu")
