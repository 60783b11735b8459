"""Several processes that do one piece of work together, as torchrun would start them."""

import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing

from mcan.runtime.distributed import World, find_world, leave_world

Work = Callable[..., Any]


def run_together(
    jobs: Sequence[tuple[int, Work, tuple[Any, ...]]], folder: Path, device: str = "cpu"
) -> list[list[Any]]:
    """Run jobs (number of processes, work, arguments) in turn; for each, every rank's result."""
    ports = [free_port() for _ in jobs]
    most = max(size for size, _, _ in jobs)
    start_processes(take_part, (jobs, ports, folder, device), most)
    return [
        [torch.load(folder / f"{number}_{rank}.pt", weights_only=False) for rank in range(size)]
        for number, (size, _, _) in enumerate(jobs)
    ]


def start_processes(work: Callable[..., None], arguments: tuple[Any, ...], number: int) -> None:
    """Call work(rank, …) in so many processes, to their end; a failure is raised here."""
    # a fork has imported everything already, but autograd has threads on a machine with a GPU
    method = "spawn" if torch.cuda.is_available() else "fork"
    torch.multiprocessing.start_processes(work, arguments, number, start_method=method)


def take_part(rank: int, jobs: Any, ports: list[int], folder: Path, device: str) -> None:
    """One process: the jobs that have room for it."""
    torch.set_num_threads(1)
    for number, ((size, work, arguments), port) in enumerate(zip(jobs, ports, strict=True)):
        if rank < size:
            place = {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": rank, "MASTER_PORT": port}
            os.environ.update({name: str(value) for name, value in place.items()})
            os.environ.update(MASTER_ADDR="127.0.0.1", LOCAL_WORLD_SIZE=str(size))
            world = find_world(device, timeout_minutes=2)
            world.join()
            try:
                torch.save(work(world, *arguments), folder / f"{number}_{rank}.pt")
            finally:
                leave_world()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def exchange(world: World) -> dict[str, Any]:
    """What every process gets from the exchanges there are."""
    return {
        "shared": world.broadcast({"from": world.rank}),
        "gathered": world.gather(("rank", world.rank)),
        "sum": world.sum(torch.tensor([1.0, float(world.rank)])).tolist(),
    }
