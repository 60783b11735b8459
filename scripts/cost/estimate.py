"""From counted work to hours: an estimate by the roofline of every kernel, and what limits it."""

from collections.abc import Iterable
from dataclasses import dataclass

from mcan.operations import Operation
from scripts.cost.machines import GPU, Assumptions
from scripts.cost.workload import Workload


@dataclass(frozen=True)
class Estimate:
    """Seconds of a step by what takes them; they overlap, so the longest decides."""

    num_gpus: int
    compute: float
    exchange: float  # of gradients
    loading: float  # of features
    validation: float  # seconds of one
    steps_per_epoch: int
    num_epochs: int

    @property
    def step(self) -> float:
        return max(self.compute, self.exchange, self.loading)

    @property
    def bottleneck(self) -> str:
        """What takes longest: compute, exchange or loading."""
        parts = {
            "compute": self.compute,
            "exchange": self.exchange,
            "loading": self.loading,
        }
        return max(parts, key=lambda name: parts[name])

    @property
    def epoch_hours(self) -> float:
        """Training and validation."""
        return (self.step * self.steps_per_epoch + self.validation) / 3600

    @property
    def run_hours(self) -> float:
        return self.epoch_hours * self.num_epochs


def time_operations(
    operations: Iterable[Operation], gpu: GPU, utilisation: float, launch: float
) -> float:
    """Seconds, kernel by kernel: arithmetic or memory, whichever is longer, or `launch` seconds."""
    return sum(
        max(
            launch,
            max(each.flops / gpu.peak(each.dtype), each.num_bytes / (1e9 * gpu.bandwidth))
            / utilisation,
        )
        for each in operations
    )


def time_exchange(num_bytes: int, num_gpus: int, assumed: Assumptions) -> float:
    """Seconds of a ring all-reduce: 2(n − 1)/n of the bytes pass every link."""
    crosses = num_gpus > assumed.gpus_per_node
    slowest = min(assumed.within_node, assumed.between_nodes) if crosses else assumed.within_node
    return 2 * (num_gpus - 1) / num_gpus * num_bytes / (1e9 * slowest)


def estimate(work: Workload, gpu: GPU, num_gpus: int, assumed: Assumptions) -> Estimate:
    """A training on so many GPUs of a kind."""
    launch = assumed.launch * 1e-6
    num_nodes = -(-num_gpus // assumed.gpus_per_node)
    read_rate = num_nodes * assumed.disk * 1e9
    batch_seconds = time_operations(work.evaluation, gpu, assumed.utilisation, launch)
    return Estimate(
        num_gpus,
        time_operations(work.steps[num_gpus].operations, gpu, assumed.utilisation, launch),
        time_exchange(4 * work.num_parameters, num_gpus, assumed),
        work.feature_bytes / read_rate,
        max(
            -(-work.evaluation_batches // num_gpus) * batch_seconds,
            work.evaluation_feature_bytes / read_rate,
        ),
        work.sizes.steps_per_epoch,
        work.sizes.num_epochs,
    )


def memory_needed(work: Workload, assumed: Assumptions) -> float:
    """GB of a GPU on the largest grid, with the fewest GPUs."""
    num_bytes = work.largest_step.memory_bytes(min(work.steps))
    return num_bytes / 1e9 + assumed.spare_memory
