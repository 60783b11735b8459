"""From counted work to hours: the roofline of every kernel, under stated assumptions."""

from dataclasses import dataclass

import torch

from mcan.cost.step_cost import Cost


@dataclass(frozen=True)
class GPU:
    """Peak rates without sparsity, as the maker states them: TFLOP/s by dtype, and GB/s."""

    half: float  # 16-bit products summed in 32 bits
    single: float
    double: float
    bandwidth: float

    def peak(self, dtype: torch.dtype) -> float:
        """TFLOP/s in a dtype; 16 bits for other types."""
        return {torch.float32: self.single, torch.float64: self.double}.get(dtype, self.half)


GPUS = {
    "V100 32 GB": GPU(125.0, 15.7, 7.8, 900),
    "RTX 4090 24 GB": GPU(165.2, 82.6, 1.29, 1008),
    "A100 80 GB": GPU(312.0, 19.5, 9.7, 2039),
    "H100 80 GB": GPU(989.0, 67.0, 34.0, 3350),
}


@dataclass(frozen=True)
class Assumptions:
    """What cannot be counted; configs/cost.yaml explains each and gives its unit."""

    utilisation: float
    launch: float
    network: float
    disk: float

    def time_kernels(self, cost: Cost, gpu: GPU) -> float:
        """Seconds: of every kernel its arithmetic, its traffic or its launch, the longest."""
        return sum(
            max(
                each.flops / (1e12 * gpu.peak(each.dtype) * self.utilisation),
                each.num_bytes / (1e9 * gpu.bandwidth * self.utilisation),
                1e-6 * self.launch,
            )
            for each in cost.operations
        )

    def time_step(
        self, cost: Cost, gpu: GPU, num_gpus: int, gradient_bytes: int, feature_bytes: int
    ) -> tuple[float, str]:
        """Seconds, and what limits a step: its parts overlap, so that the longest decides."""
        # a ring all-reduce passes 2(n − 1)/n of the gradients over every link
        exchanged = 2 * (num_gpus - 1) / num_gpus * gradient_bytes
        return max(
            (self.time_kernels(cost, gpu), "compute"),
            (exchanged / (1e9 * self.network), "exchange"),
            (feature_bytes / (1e9 * self.disk), "loading"),
        )
