"""One process at a time: rejected, awaited, and free again when the holder is gone."""

import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from data.io.locks import FileLock, is_locked

HOLD = """
import sys
from pathlib import Path
from data.io.locks import FileLock
lock = FileLock(Path(sys.argv[1]), "busy")
print("held", flush=True)
sys.stdin.read()
"""


def hold(path: Path) -> subprocess.Popen[str]:
    """A process that holds the lock until it is killed."""
    command = [sys.executable, "-c", HOLD, str(path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_second_process_is_rejected_until_the_first_is_killed(tmp_path: Path, kind: str) -> None:
    path = tmp_path / ".lock" if kind == "file" else tmp_path
    holder = hold(path)
    with pytest.raises(ValueError, match=r"^somebody else writes it$"):
        FileLock(path, "somebody else writes it")
    assert is_locked(path) or kind == "folder"
    holder.kill()
    holder.wait()
    with FileLock(path, "busy"):
        pass
    assert not is_locked(path)


def test_waiting_says_so_once_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / ".lock"
    first = FileLock(path, "busy")
    threading.Timer(0.2, first.release).start()
    with FileLock(path, "waiting for the other copy", wait=True):
        assert capsys.readouterr().err == "waiting for the other copy\n"


def test_a_lock_on_a_deleted_file_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    first = FileLock(path, "busy")
    threading.Timer(0.2, lambda: (os.unlink(path), first.release())).start()
    with FileLock(path, "waiting", wait=True):
        assert is_locked(path)


def test_a_process_that_asks_keeps_nobody_from_the_lock(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    asker = path.open("w")
    fcntl.flock(asker, fcntl.LOCK_SH)  # as `is_locked` does, for longer
    threading.Timer(0.2, asker.close).start()
    with FileLock(path, "busy"):
        assert is_locked(path)


def test_a_file_system_without_locks_is_named_or_tolerated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("data.io.locks.fcntl.flock", fail)
    with pytest.raises(OSError, match=r"\.lock cannot be locked: Operation not supported"):
        FileLock(tmp_path / ".lock", "busy")
    FileLock(tmp_path / ".lock", "busy", required=False).release()
