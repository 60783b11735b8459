"""Locks between processes, over flock: held by an open file, gone with the process."""

import fcntl
import os
import sys
import time
from pathlib import Path
from typing import Self


class FileLock:
    """An exclusive lock on a file, made where it is absent, or on a folder; until `release`.

    While another process holds it, `busy` is raised as a ValueError, or printed with `wait` unless
    it is empty.
    With `required` false, a file system without locks leaves the work unprotected.
    """

    def __init__(self, path: Path, busy: str, *, wait: bool = False, required: bool = True) -> None:
        while True:
            flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
            self.descriptor = os.open(path, flags, 0o644)
            try:
                if self._acquire(path, busy, wait):
                    return
            except OSError as error:
                if not required:
                    return
                self.release()
                raise OSError(f"{path} cannot be locked: {error.strerror}") from None
            except BaseException:
                self.release()
                raise
            self.release()

    def _acquire(self, path: Path, busy: str, wait: bool) -> bool:
        """Lock the open file; False where it is to be opened again."""
        if not take(self.descriptor):
            if not wait:
                raise ValueError(busy)
            if busy:
                print(busy, file=sys.stderr, flush=True)
            fcntl.flock(self.descriptor, fcntl.LOCK_EX)
        # the last holder may have deleted the file: then this is a lock on nothing
        if path.exists() and os.path.samestat(os.fstat(self.descriptor), os.stat(path)):
            return True
        if not wait:
            raise ValueError(busy)
        return False

    def release(self) -> None:
        """Let others have it; a second call does nothing."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()


def is_locked(path: Path) -> bool:
    """Whether another process holds the lock on a file."""
    if not path.is_file():
        return False
    with open(path) as file:
        return is_held(file.fileno())


def is_held(descriptor: int) -> bool:
    """Whether another process holds the lock; asked with a shared one, which is none to `take`."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return False


def take(descriptor: int) -> bool:
    """Take the lock unless another process holds it; one that only asks is gone in a moment."""
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if is_held(descriptor):
                return False
        time.sleep(0.001)
