"""Fuzzing: damage to a file, a check of how a reader handles it, and the number of cases tried."""

import contextlib
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

CASES: Counter[str] = Counter()  # tried so far in this session, by what was fuzzed
SECONDS = 120.0  # limit per case; a few milliseconds are usual on an idle machine


@dataclass(frozen=True)
class Damage:
    """Damage to a file: bytes from `start` to `stop` are replaced, the end may be cut off."""

    start: int
    stop: int
    instead: bytes = b""
    keep: int | None = None
    flips: tuple[tuple[int, int], ...] = ()  # (place, bits)

    def apply(self, content: bytes) -> bytes:
        """The damaged content."""
        damaged = bytearray(content)
        for place, bits in self.flips:
            damaged[place] ^= bits
        damaged[self.start : self.stop] = self.instead
        return bytes(damaged[: self.keep])


def damages(size: int) -> st.SearchStrategy[Damage]:
    """Truncations, flipped bits, and bytes that are removed, inserted or overwritten."""
    place = st.integers(0, size - 1)
    flips = st.lists(st.tuples(place, st.integers(1, 255)), min_size=1, max_size=4)
    pieces = st.one_of(
        st.binary(min_size=1, max_size=8),
        st.sampled_from([b"\xff\xff\xff\x7f", b"\0" * 16, b'"', b"}", b"[[[[", b"1e999", b"null"]),
    )
    return st.one_of(
        st.builds(lambda keep: Damage(0, 0, keep=keep), place),
        st.builds(lambda flips: Damage(0, 0, flips=tuple(flips)), flips),
        st.builds(lambda at, piece: Damage(at, at, piece), place, pieces),
        st.builds(lambda at, piece: Damage(at, at + len(piece), piece), place, pieces),
        st.builds(lambda at, count: Damage(at, at + count), place, st.integers(1, 64)),
    )


@dataclass(frozen=True)
class Format:
    """`make(path)` writes a valid file, `read(path)` reads it, `check(value)` checks the result."""

    name: str
    file: str
    make: Callable[[Path], object]
    read: Callable[[Path], Any]
    check: Callable[[Any], object] = lambda value: None

    def read_or_reject(self, path: Path, what: str) -> None:
        """The file is valid, or the reader's error names it.

        An exception that a command would not report as one sentence is a bug in the reader.
        """
        CASES[what] += 1
        with limited_time():
            try:
                value = self.read(path)
            except (ValueError, OSError) as error:
                message = str(error)
                assert path.name in message, f"the file is not named: {message}"
                return
        self.check(value)

    def fuzz(self, path: Path, num_cases: int) -> None:
        """Damage the file at `path`, which is valid, again and again."""
        valid = path.read_bytes()

        @settings(max_examples=num_cases)
        @given(damages(len(valid)))
        def damage_and_read(damage: Damage) -> None:
            path.unlink()  # a tensor of the previous case may still be mapped
            path.write_bytes(damage.apply(valid))
            self.read_or_reject(path, self.name)

        damage_and_read()


@contextlib.contextmanager
def limited_time(seconds: float = SECONDS) -> Iterator[None]:
    """A case that hangs fails."""

    def stop(*_: object) -> None:
        raise AssertionError(f"the case takes longer than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
