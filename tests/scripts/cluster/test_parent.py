"""A command stops with the one that waits for it, and with no other."""

import os
import signal
import subprocess
import sys

from scripts.cluster.parent import VARIABLE, name_parent
from tests.small_runs import HANG, ROOT

CHILD = """
import ctypes, os, signal
from scripts.cluster.parent import stop_with_parent
stop_with_parent()
number = ctypes.c_int()
ctypes.CDLL(None).prctl(2, ctypes.byref(number))  # PR_GET_PDEATHSIG
print(number.value, "STARTED_BY" in os.environ, flush=True)
"""
WAIT = "signal.pause()"
PARENT = f"""
import subprocess, sys
from scripts.cluster.parent import name_parent
subprocess.run([sys.executable, "-c", {CHILD + WAIT!r}], env=name_parent())
"""


def start(program, environment=os.environ):
    words = [sys.executable, "-c", program]
    return subprocess.Popen(words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)


def test_a_child_ends_when_its_parent_is_killed():
    parent = start(PARENT)
    assert parent.stdout.readline() == f"{signal.SIGTERM.value} False\n"
    parent.kill()
    assert parent.communicate(timeout=HANG)[0] == ""  # the pipe is closed when the child has ended


def test_a_parent_that_was_gone_before_is_noticed():
    gone = start("")
    gone.wait(timeout=HANG)
    child = start(CHILD + WAIT, {**os.environ, VARIABLE: str(gone.pid)})
    child.communicate(timeout=HANG)
    assert child.returncode == -signal.SIGTERM


def test_a_command_that_a_shell_started_follows_nobody():
    assert start(CHILD).communicate(timeout=HANG)[0] == "0 False\n"
    assert VARIABLE not in os.environ
    assert name_parent({"A": "b"}) == {"A": "b", VARIABLE: str(os.getpid())}
