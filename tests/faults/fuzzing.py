"""Fuzzing: cases drawn by number from a seed, damage to files, and a check of how a reader ends."""

import contextlib
import faulthandler
import random
import resource
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.json_contents import change_json

CASES: Counter[str] = Counter()  # tried so far in this process, by what was fuzzed
SECONDS = 120.0  # limit per case; a few milliseconds are usual on an idle machine
MEMORY = 2 << 30  # bytes that the cases of a part may reserve
NUM_CASES = 400  # of a reader, in CI
PIECES = [b"\xff\xff\xff\x7f", b"\0" * 16, b'"', b"}", b"[[[[", b"1e999", b"null"]

Case = Callable[[random.Random], object]  # draws one case and tries it
Fixture = Callable[[str], Any]  # pytest's, by name


@dataclass(frozen=True)
class Fuzzer:
    """`prepare(folder, fixture)` gives what tries a case; an error other than expected fails it."""

    name: str
    prepare: Callable[[Path, Fixture], Case]
    num_cases: int = NUM_CASES  # in CI; at length, the proportion


@dataclass(frozen=True)
class Format:
    """`make(path)` writes a valid file, `read(path)` reads it, `check(value)` checks the result."""

    name: str
    file: str
    make: Callable[[Path], object]
    read: Callable[[Path], Any]
    check: Callable[[Any], object] = lambda value: None
    is_valid: bool = True  # whether the undamaged file is read without an error

    def prepare(self, folder: Path, _: Fixture) -> Case:
        """Write a valid file, whose damaged forms are the cases."""
        path = folder / self.file
        self.make(path)
        valid = path.read_bytes()
        if self.is_valid:
            self.check(self.read(path))

        def damage_and_read(chance: random.Random) -> None:
            is_json = path.suffix == ".json" and chance.random() < 0.5
            content = change_json(chance, valid) if is_json else damage(chance, valid)
            path.unlink()  # a tensor of the previous case may still be mapped
            path.write_bytes(content)
            self.read_or_reject(path)

        return damage_and_read

    def read_or_reject(self, path: Path) -> None:
        """The file is valid, or the reader's error names it.

        An exception that a command would not report as one sentence is a bug in the reader.
        """
        try:
            value = self.read(path)
        except (ValueError, OSError) as error:
            message = str(error)
            assert path.name in message, f"the file is not named: {message}"
            return
        self.check(value)


def damage(chance: random.Random, content: bytes) -> bytes:
    """Cut off the end, flip bits, or insert, overwrite or remove bytes."""
    damaged = bytearray(content)
    place, kind = chance.randrange(len(content)), chance.randrange(5)
    piece = chance.choice([chance.randbytes(chance.randint(1, 8)), chance.choice(PIECES)])
    if kind == 0:
        del damaged[place:]
    elif kind == 1:
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(len(content))] ^= chance.randint(1, 255)
    elif kind == 2:
        damaged[place:place] = piece
    elif kind == 3:
        damaged[place : place + len(piece)] = piece
    else:
        del damaged[place : place + chance.randint(1, 64)]
    return bytes(damaged)


def draw_case(seed: int, name: str, number: int) -> random.Random:
    """The generator of one case: it depends on nothing else."""
    return random.Random(f"{seed} {name} {number}")


@contextlib.contextmanager
def limited_time(seconds: float = SECONDS) -> Iterator[None]:
    """A case that hangs fails; where it does so in a library in C, the process ends."""

    def stop(*_: object) -> None:
        raise AssertionError(f"the case takes longer than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    faulthandler.dump_traceback_later(2 * seconds, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def limited_memory(num_bytes: int = MEMORY) -> Iterator[None]:
    """A case that would fill the memory fails, and the machine stays usable."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    limit = pages * resource.getpagesize() + num_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
