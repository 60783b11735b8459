"""Whether this process continues the work of one that ended: after a crash, or in the queue."""

import os

COUNTS = ("TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT")  # torchrun's, and Slurm's requeues


def count_restarts() -> int:
    """How often torchrun or Slurm has started this work again."""
    return sum(int(os.environ.get(name, "0") or 0) for name in COUNTS)
