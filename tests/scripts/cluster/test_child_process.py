"""A child process that a request to stop is passed on to."""

import pytest

from scripts.cluster.child_process import run_child

ASKS = """
import os, signal, sys, time
number = int(sys.argv[1])
if number:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(number))
os.kill(os.getppid(), signal.SIGTERM)
while True:
    time.sleep(0.01)
"""


@pytest.mark.parametrize(("own", "code"), [(75, 75), (130, 75), (0, 75), (1, 1), (2, 2)])
def test_only_a_child_that_a_request_ended_was_stopped(tmp_path, own, code):
    """It has the parent asked to stop, and ends with a code of its own, or by the signal."""
    found, received = run_child(["-c", ASKS, str(own)], tmp_path / "log")
    assert (found, len(received)) == (code, 1)
