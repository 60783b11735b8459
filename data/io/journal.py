"""Which parts of an unfinished file are safely on disk, so that a killed build can resume."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from data.io.atomic_files import make_parent, write_all
from data.io.locks import FileLock


class Journal:
    """A text file: one line of JSON that says what is being made, then `number checksum` lines.

    A number is that of a part: an image of a store, a batch of an array file.

    Holding it open holds a lock: two processes cannot write the same file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.num_bytes = 0  # of intact lines; whatever follows them is cut off before the next
        make_parent(path)
        busy = (
            f"{path} is held by another process that is writing the same file; wait for it to end"
        )
        self.lock = FileLock(path, busy, required=False)
        self.descriptor = self.lock.descriptor

    def start(self, identity: dict[str, Any]) -> None:
        """Forget everything and begin a journal about `identity`."""
        self.num_bytes = 0
        self.append(json.dumps(identity) + "\n")
        os.fsync(self.descriptor)

    def read(self) -> tuple[dict[str, Any] | None, dict[int, int]]:
        """What is being made (None: unreadable) and {number: checksum} of what is done."""
        lines = self.path.read_bytes().split(b"\n")[:-1]
        try:
            identity = json.loads(lines[0])
        except (IndexError, ValueError):
            return None, {}
        if not isinstance(identity, dict):
            return None, {}
        self.num_bytes = len(lines[0]) + 1
        done = {}
        for line in lines[1:]:
            words = line.split()
            if len(words) != 2 or not all(word.isdigit() for word in words):
                break  # torn by a power cut: what follows is not to be trusted
            done[int(words[0])] = int(words[1])
            self.num_bytes += len(line) + 1
        return identity, done

    def add(self, entries: list[tuple[int, int]]) -> None:
        """Record parts whose rows the disk already holds."""
        self.append("".join(f"{number} {checksum}\n" for number, checksum in entries))

    def append(self, text: str) -> None:
        """Write whole lines after the intact ones: half a line may not become part of another."""
        content = text.encode()
        os.ftruncate(self.descriptor, self.num_bytes)
        write_all(self.descriptor, content, self.num_bytes)
        self.num_bytes += len(content)

    def close(self, remove: bool) -> None:
        """Release the lock; `remove` when the file is finished or given up."""
        if remove:
            self.path.unlink(missing_ok=True)
        self.lock.release()


def describe_change(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """The fields in which two identities of unfinished files differ, with both values."""
    return " and ".join(
        "other grids (image ids, rows and columns)"
        if name == "grids"
        else f"{name} {found.get(name)}, not {wanted.get(name)}"
        for name in {**wanted, **found}
        if found.get(name) != wanted.get(name)
    )
