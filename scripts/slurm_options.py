"""A site's settings, configs/launcher/slurm.yaml, as options of sbatch."""

from typing import Any

from omegaconf import DictConfig

SIGNAL = "USR1"
SECONDS = 120  # between the signal and the end: time to save


def list_options(launcher: DictConfig) -> dict[str, Any]:
    """The options of sbatch that a site and the size of a job ask for; True is a bare flag."""
    chosen: dict[str, Any] = {
        "partition": launcher.partition,
        "account": launcher.account,
        "qos": launcher.qos,
        "time": launcher.minutes,
        "gres": f"{launcher.gres}:{launcher.gpus}" if launcher.gres else None,
        "cpus-per-task": launcher.cpus * launcher.gpus,
        "mem": f"{launcher.memory_gb}G" if launcher.memory_gb else None,
        "nodes": launcher.nodes,
        "ntasks-per-node": 1,
        "signal": f"{SIGNAL}@{SECONDS}",
        "requeue": True,
        "open-mode": "append",
        **dict(map(read_option, launcher.more)),
    }
    return {name: value for name, value in chosen.items() if value is not None}


def read_option(word: str) -> tuple[str, Any]:
    """A further option, as it is typed after sbatch: name=value, or a bare name."""
    name, given, value = str(word).removeprefix("--").partition("=")
    return name, value if given else True
