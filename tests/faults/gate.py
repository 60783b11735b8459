"""What rival runs import (modules=[tests.faults.gate]): they wait for each other, then go at once.

GATE names an empty folder, RIVALS says how many come.
"""

import os
import time
from pathlib import Path

gate, num_rivals = Path(os.environ["GATE"]), int(os.environ["RIVALS"])
(gate / str(os.getpid())).touch()
deadline = time.monotonic() + 300
while len(list(gate.iterdir())) < num_rivals:
    assert time.monotonic() < deadline, "the rivals did not come"
    time.sleep(0.0005)
