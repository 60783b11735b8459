"""Imported by concurrent runs (modules=[tests.faults.gate]): they wait until all have started.

GATE names an empty folder, NUM_RUNS is the number of runs.
"""

import os
import time
from pathlib import Path

gate, num_runs = Path(os.environ["GATE"]), int(os.environ["NUM_RUNS"])
(gate / str(os.getpid())).touch()
deadline = time.monotonic() + 300
while len(list(gate.iterdir())) < num_runs:
    assert time.monotonic() < deadline, "the other runs did not start"
    time.sleep(0.0005)
