"""GPUs as their makers describe them, and what is assumed of the machine around them."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class GPU:
    """Peak rates without sparsity: 16-bit products summed in 32 bits, plain float32, float64."""

    name: str
    memory: int  # GB
    half: float  # TFLOP/s
    single: float
    double: float
    bandwidth: float  # GB/s

    def peak(self, dtype: torch.dtype) -> float:
        """FLOP/s in a dtype; 16 bits for what is no floating-point number."""
        rates = {torch.float32: self.single, torch.float64: self.double}
        return 1e12 * rates.get(dtype, self.half)


GPUS = (
    GPU("V100 16 GB", 16, 125.0, 15.7, 7.8, 900),
    GPU("V100 32 GB", 32, 125.0, 15.7, 7.8, 900),
    GPU("RTX 3090 24 GB", 24, 71.0, 35.6, 0.56, 936),
    GPU("RTX 4090 24 GB", 24, 165.2, 82.6, 1.29, 1008),
    GPU("A100 40 GB", 40, 312.0, 19.5, 9.7, 1555),
    GPU("A100 80 GB", 80, 312.0, 19.5, 9.7, 2039),
    GPU("H100 80 GB", 80, 989.0, 67.0, 34.0, 3350),
)


@dataclass(frozen=True)
class Assumptions:
    """What no code can tell; see configs/cost.yaml for the units."""

    utilisation: float
    launch: float
    gpus_per_node: int
    within_node: float
    between_nodes: float
    disk: float
    spare_memory: float

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value <= 0 and name not in ("launch", "spare_memory"):
                raise ValueError(f"assume.{name} is {value}, expected more than 0")
        if self.utilisation > 1:
            raise ValueError(f"assume.utilisation is {self.utilisation}, expected 1 at most")
