"""How a process that scripts.cluster.launch started says why it ended: one file for all of them."""

import json
import os
import sys
from pathlib import Path

from mcan.runtime.stop_request import PREEMPTED

FILE = "LAUNCH_EXIT_STATUS"  # the launcher names the file; without it there is no launcher


def leave_exit_status(code: int, sentence: str = "") -> bool:
    """Leave an exit code and a sentence for the launcher; whether there is one.

    Of several processes the first counts: how the others end follows from it.
    """
    if FILE not in os.environ:
        return False
    path = Path(os.environ[FILE])
    own = path.with_name(f"{path.name}.{os.getpid()}")
    own.write_text(json.dumps([code, sentence]), encoding="utf-8")
    try:
        os.link(own, path)  # whole or not at all, and never over another's
    except FileExistsError:
        pass
    finally:
        own.unlink()
    return True


def note_request() -> None:
    """Note that the launcher was asked to stop: the reason where no process leaves another."""
    request_file().touch()


def read_exit_status() -> tuple[int, str] | None:
    """The exit code and the sentence that were left; without them, 75 after a request to stop."""
    if FILE not in os.environ:
        return None
    path = Path(os.environ[FILE])
    if not path.is_file():
        return (PREEMPTED, "") if request_file().is_file() else None
    code, sentence = json.loads(path.read_text(encoding="utf-8"))
    return code, sentence


def request_file() -> Path:
    """The file that is there after a request to stop."""
    return Path(f"{os.environ[FILE]}.requested")


def count_restarts() -> int:
    """How often torchrun, after a crash, or Slurm, from its queue, has started this work again."""
    names = ("TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT")
    return sum(int(os.environ.get(name, "0") or 0) for name in names)


def end_if_over() -> None:
    """End a process that torchrun has started again after a mistake or a request to stop."""
    status = read_exit_status() if count_restarts() else None
    if status is not None:  # nothing to try again
        sys.exit(status[0])
