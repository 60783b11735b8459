"""make soak: a long training run in small form, whose memory and open files must not grow.

python -m scripts.soak minutes=30
"""

import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from configs.schema.training import Soak
from data.shapes.build import Sizes, build_shapes
from mcan.runtime.stop_request import PREEMPTED
from scripts.cli.command import command
from scripts.cluster.parent import name_parent
from scripts.cluster.process_samples import Sample, find_growth, take_sample

SCENES = Sizes(train=40, val=20, test=4, human=4)
# short epochs: validation, checkpoints and TensorBoard's images come often
SMALL = [
    "data=custom", "model=tiny", "optim.epochs=1000000", "optim.batch_size=16",
    "runtime.checkpoint_every_minutes=0.1", "runtime.num_threads=1", "runtime.show_progress=false",
    "figures=0", "name=soak",
]  # fmt: skip


@command("soak")
def main(settings: Soak) -> None:
    """Train for the time asked for, print samples, and say whether anything grew."""
    interval = 60 / settings.samples_per_minute
    with tempfile.TemporaryDirectory() as folder:
        build_shapes(Path(folder) / "data", sizes=SCENES, num_workers=1)
        words = [*SMALL, f"data.root={folder}/data", f"runs={folder}", *shlex.split(settings.train)]
        metrics = Path(folder) / "soak" / "metrics.jsonl"
        samples = list(train_and_sample(words, metrics, 60 * settings.minutes, interval))
        num_epochs = len(metrics.read_text().splitlines())
    problems = find_growth(samples, settings.warm_up, settings.tolerance)
    print(f"{len(samples)} samples, {num_epochs} epochs with validation", flush=True)
    if problems:
        print(f"GROWS: {'; '.join(problems)}")
        sys.exit(1)
    print(f"FLAT: memory within {settings.tolerance:g} %, files and threads as many as before")


def train_and_sample(
    words: list[str], metrics: Path, seconds: float, interval: float
) -> Iterator[Sample]:
    """Samples of a run, from its first epoch's metrics on; it is stopped on request in the end."""
    process = subprocess.Popen([sys.executable, "-m", "scripts.train", *words], env=name_parent())
    start: float | None = None
    try:
        while start is None or time.monotonic() - start < seconds:
            time.sleep(interval)
            if process.poll() is not None:
                raise ValueError(f"the run ended by itself with exit code {process.poll()}")
            if start is None:
                start = time.monotonic() if metrics.is_file() else None
                continue
            sample = take_sample(process.pid, time.monotonic() - start)
            print(sample, flush=True)
            yield sample
        process.send_signal(signal.SIGTERM)
        if process.wait(timeout=600) != PREEMPTED:
            raise ValueError(f"asked to stop, the run ended with exit code {process.poll()}")
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    main()
