"""make sweep-report: how far a sweep is, and what it has shown so far.

python -m scripts.sweep_report sweep=runs/sweep
"""

from pathlib import Path

from configs.schema.training import SweepReport
from scripts.cli.command import command
from scripts.sweep.plan import load_plan
from scripts.sweep.report import report


@command("sweep_report")
def main(settings: SweepReport) -> None:
    """Report on a sweep, finished or not."""
    report(load_plan(Path(settings.sweep)))


if __name__ == "__main__":
    main()
