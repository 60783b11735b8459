"""From counted work to hours, under stated assumptions."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, NamedTuple

if TYPE_CHECKING:  # the settings of all commands have these assumptions, and most need no torch
    import torch

    from mcan.cost.step_cost import Cost


class GPU(NamedTuple):
    """Peak rates without sparsity, as the maker states them: TFLOP/s by dtype, and GB/s."""

    half: float  # 16-bit products summed in 32 bits
    single: float
    bandwidth: float


GPUS = {
    "V100 32 GB": GPU(125.0, 15.7, 900),
    "RTX 4090 24 GB": GPU(165.2, 82.6, 1008),
    "A100 80 GB": GPU(312.0, 19.5, 2039),
    "H100 80 GB": GPU(989.0, 67.0, 3350),
}


def find_gpu(device_name: str) -> str | None:
    """Which GPU of the table a driver calls by this name, found by its model: A100, RTX 4090."""
    for name in GPUS:
        model = name.rsplit(" ", 2)[0]
        if re.search(rf"\b{model}\b", device_name):
            return name
    return None


@dataclass(frozen=True)
class Assumptions:
    """What cannot be counted; configs/cost.yaml explains each and gives its unit."""

    utilisation: Annotated[float, "> 0 and <= 1"] = 0.6
    launch: Annotated[float, ">= 0"] = 5.0
    network: Annotated[float, "> 0"] = 10.0
    disk: Annotated[float, "> 0"] = 2.0

    def time_kernels(self, step: "Cost", gpu: GPU, dtype: "torch.dtype") -> tuple[float, float]:
        """Seconds of a step's arithmetic and memory traffic, and of its kernels' launches."""
        peak = gpu.half if dtype.itemsize == 2 else gpu.single
        busy = step.flops / (1e12 * peak) + step.bytes / (1e9 * gpu.bandwidth)
        return busy / self.utilisation, 1e-6 * self.launch * step.kernels

    def time_step(
        self,
        step: "Cost",
        gpu: GPU,
        dtype: "torch.dtype",
        num_gpus: int,
        gradient_bytes: int,
        feature_bytes: int,
    ) -> tuple[float, str]:
        """Seconds, and what limits a step: its parts overlap, so that the longest decides.

        Its kernels take their arithmetic and their memory traffic, or their launches if longer.
        """
        # a ring all-reduce passes 2(n − 1)/n of the gradients over every link
        exchanged = 2 * (num_gpus - 1) / num_gpus * gradient_bytes
        return max(
            (max(self.time_kernels(step, gpu, dtype)), "compute"),
            (exchanged / (1e9 * self.network), "exchange"),
            (feature_bytes / (1e9 * self.disk), "loading"),
        )
