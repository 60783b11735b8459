"""A real pseudo-terminal for a command: keys can be pressed, and it can be closed."""

import contextlib
import fcntl
import os
import select
import subprocess
import termios
import threading
import uuid
from collections.abc import Sequence

from tests.faults.runs import assert_is_over, environment, restore_signals
from tests.small_runs import HANG, ROOT

INTERRUPT = b"\x03"  # Ctrl-C


def take_terminal() -> None:
    """Make standard input the controlling terminal of this session."""
    restore_signals()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """A pseudo-terminal and the command that runs in it."""

    def __init__(self, command: Sequence[str], **variables: str) -> None:
        self.run = uuid.uuid4().hex
        self._keyboard, screen = os.openpty()
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment(self.run, **variables),
            stdin=screen,
            stdout=screen,
            stderr=screen,
            start_new_session=True,
            preexec_fn=take_terminal,
        )
        os.close(screen)
        self._shown: list[bytes] = []
        self._is_open = True
        self._watcher = threading.Thread(target=self._watch)
        self._watcher.start()

    def _watch(self) -> None:
        with contextlib.suppress(OSError):  # no process is left that could write
            while self._is_open:  # a blocking read() would keep a closed terminal open
                if select.select([self._keyboard], [], [], 0.01)[0]:
                    self._shown.append(os.read(self._keyboard, 4096))

    def press(self, key: bytes) -> None:
        """Press a key: the terminal sends its signal to all foreground processes."""
        os.write(self._keyboard, key)

    def hang_up(self) -> None:
        """Close the terminal, as when a connection breaks."""
        self._is_open = False
        self._watcher.join()
        os.close(self._keyboard)

    def end(self) -> tuple[int, str]:
        """The exit code and the output; no process that it started may be left."""
        code = self.process.wait(timeout=HANG)
        assert_is_over(self.run)
        self._watcher.join()
        return code, b"".join(self._shown).decode()
