"""TensorBoard's files: curves are worth less than the run, which goes on when they end."""

import contextlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter


class Board:
    """Writes what TensorBoard shows; says so once when its disk takes no more."""

    def __init__(self, folder: Path, first_step: int) -> None:
        self.folder = folder
        self._writer: SummaryWriter | None = None
        threading.excepthook = quieten_writer
        with self._giving_up():
            # purge_step drops what an interrupted run wrote after the checkpoint it goes on from
            self._writer = SummaryWriter(str(folder), purge_step=first_step)

    def add(self, kind: str, *values: Any, **options: Any) -> None:
        """Call SummaryWriter.add_<kind>."""
        if self._writer is not None:
            with self._giving_up():
                getattr(self._writer, f"add_{kind}")(*values, **options)

    def flush(self) -> None:
        """Bring what was added to the disk."""
        if self._writer is not None:
            with self._giving_up():
                self._writer.flush()

    @contextlib.contextmanager
    def _giving_up(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._writer = None
            print(
                f"WARNING: {self.folder} cannot be written: {error.strerror}; the run goes on "
                f"without curves",
                file=sys.stderr,
                flush=True,
            )


def quieten_writer(failure: threading.ExceptHookArgs) -> None:
    """TensorBoard's thread hands its error on to whoever writes next: no need to print it too."""
    if not type(failure.thread).__module__.startswith("tensorboard."):
        threading.__excepthook__(failure)
