"""The processes that train together: one, or as many as torchrun started."""

import contextlib
import gc
import os
import socket
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist

# its functions have the group as a default argument if it is imported later, as DDP does
import torch.distributed.nn.functional

from mcan.runtime.stop_request import StoppedOnRequestError

Result = TypeVar("Result")

# how gloo, NCCL and torch's store say that the other side of a connection is gone
GONE = ("closed", "reset by peer", "roken pipe", "ncclRemoteError", "recv, got 0 bytes")


@dataclass(frozen=True)
class World:
    """This process's place among all, and its device; they exchange after `join`."""

    rank: int
    size: int
    device: torch.device
    timeout_minutes: float = 10.0  # that one process waits for another in an exchange

    def join(self, patience_minutes: float = 0.0) -> None:
        """Make the group of all processes, if torchrun started them: NCCL on CUDA, else gloo.

        With patience others may come later, such as those on a machine that still copies its data.
        """
        if not is_launched() or dist.is_initialized():
            return
        timeout = timedelta(minutes=self.timeout_minutes)
        patience = max(timeout, timedelta(minutes=patience_minutes))
        # as init_process_group does it, which knows one timeout for both
        store, rank, size = next(dist.rendezvous("env://", timeout=patience))
        store.set_timeout(timeout)
        dist.init_process_group(
            "nccl" if self.device.type == "cuda" else "gloo",
            store=dist.PrefixStore("default_pg", store),
            rank=rank,
            world_size=size,
            timeout=timeout,
        )

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


def is_launched() -> bool:
    """Whether torchrun started this process; a site may have set one of its variables alone."""
    return {"RANK", "WORLD_SIZE"} <= os.environ.keys()


def find_world(device: str | None = None, timeout_minutes: float = 10) -> World:
    """The place that torchrun gave this process, or a world of its own; nothing is joined yet."""
    rank, size = 0, 1
    if is_launched():
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    place = choose_device(device, local_rank, int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    if place.type == "cuda":
        torch.cuda.set_device(place)
    return World(rank, size, place, timeout_minutes)


@contextlib.contextmanager
def open_world(device: str | None, timeout_minutes: float) -> Iterator[World]:
    """The world for as long as the block lasts; an exchange that fails is an error by name."""
    world = find_world(device, timeout_minutes)
    leaves_alone = False
    try:
        yield world
    except StoppedOnRequestError as error:
        clear_frames(error)
        raise
    except BaseException as error:
        leaves_alone = True
        clear_frames(error)  # whose variables may hold the group
        is_gloo = isinstance(error, RuntimeError) and "gloo" in str(error)
        if not (is_gloo or isinstance(error, dist.DistError)):
            raise
        raise ConnectionAbortedError(describe_failure(world, str(error))) from error
    finally:
        leave_world(leaves_alone)


def clear_frames(error: BaseException | None) -> None:
    """Let go of the variables of the functions that an error, or one before it, has left."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__context__


def describe_failure(world: World, message: str) -> str:
    """What a failed exchange means, and in brackets its library's own reason."""
    reason = " ".join(message.partition("Exception raised from")[0].split())  # no C++ frames
    this = f"process {world.rank} of {world.size}"
    if "imed out" in reason or "imeout" in reason:
        what = (
            f"{this} got no reply from another process: none within "
            f"runtime.timeout_minutes={world.timeout_minutes:g}, so it hangs or is slower than that"
        )
    elif any(word in reason for word in GONE):
        what = (
            f"{this} got no reply from another process: it has ended, or the network between them "
            f"has; what it said or torchrun says of it names the cause"
        )
    else:
        what = f"{this} on {world.device} could not exchange with the others"
    return f"{what}, and resume=true continues from the last checkpoint ({reason})"


def leave_world(leaves_alone: bool = False) -> None:
    """Leave the group, if there is one, and end its threads.

    Gloo's threads end with the last reference to the group; DDP's lies in a cycle. Left to the
    end of Python, a thread that still releases a tensor aborts the process. NCCL waits until all
    processes leave: one that an error ends `alone` only ends, and torchrun then ends the others.
    """
    if not dist.is_initialized() or (leaves_alone and dist.get_backend() == "nccl"):
        return
    dist.destroy_process_group()
    gc.collect()


def choose_device(name: str | None, local_rank: int = 0, local_size: int = 1) -> torch.device:
    """The device of that name; "cuda" without a number is this process's own, as is no name.

    `local_size` processes share this machine, and each needs a GPU of its own.
    """
    try:
        place = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
        if place.type not in ("cpu", "cuda"):
            raise RuntimeError  # torch knows more than this code was written for
    except RuntimeError:
        raise ValueError(f"there is no device '{name}'; expected cpu, cuda or cuda:<n>") from None
    if place.type != "cuda":
        return place
    if not torch.cuda.is_available():
        raise ValueError(f"the device '{name}' was asked for, but torch finds no CUDA here")
    count = torch.cuda.device_count()
    if place.index is None:
        num_processes = max(local_size, local_rank + 1)
        if num_processes > count:
            raise ValueError(
                f"{num_processes} processes were started on {socket.gethostname()}, where torch "
                f"sees {count} GPUs: start at most one per GPU (GPUS={count}), or use the CPU "
                f"(runtime.device=cpu)"
            )
        return torch.device("cuda", local_rank)
    if place.index >= count:
        raise ValueError(f"there is no {name} here: torch sees {count} GPUs, numbered from 0")
    if local_size > 1:
        raise ValueError(
            f"runtime.device={name} is one GPU, but {local_size} processes were started on "
            f"{socket.gethostname()}; runtime.device=null gives each its own"
        )
    return place
