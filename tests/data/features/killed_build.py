"""A process that makes a store and is killed when it has stored some images."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def kill_when_stored(program: str, output: Path, num_images: int, *arguments: Path) -> None:
    """Run Python code with `output` and the arguments; kill it once the journal has so many."""
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(output), *map(str, arguments)],
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )
    journal = output.with_name(output.name + ".journal")
    deadline = time.monotonic() + 600
    while not (journal.exists() and journal.read_text().count("\n") == 1 + num_images):
        assert time.monotonic() < deadline
        assert child.poll() is None
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert not output.exists()
