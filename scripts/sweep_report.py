"""make sweep-report: how far a sweep is, and what it has shown so far.

python -m scripts.sweep_report sweep=runs/sweep
"""

from pathlib import Path

from omegaconf import DictConfig

from scripts.entry import command
from scripts.sweep.plan import load_plan
from scripts.sweep.report import report


@command("sweep_report")
def main(config: DictConfig) -> None:
    """Report on a sweep, finished or not."""
    report(load_plan(Path(config.sweep)))


if __name__ == "__main__":
    main()
