"""A long JSON array read element by element, in the memory of one element."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

CHUNK = 1 << 16  # characters
AFTER = (" ", "\t", "\n", "\r", ",", "]")  # what may follow an element
SPACE = re.compile(r"[ \t\n\r]*")


def iterate_array(path: str | Path) -> Iterator[Any]:
    """The elements of the one JSON array that a file must hold."""
    with open(path, encoding="utf-8") as file:
        window = Window(file, path)
        window.expect("[", "the beginning of a JSON array")
        if window.next() == "]":
            window.position += 1
        else:
            yield window.decode()
            while window.next() == ",":
                window.position += 1
                yield window.decode()
            window.expect("]", "a comma or the end of the array")
        if window.next():
            raise ValueError(f"{path} goes on after the end of its JSON array")


class Window:
    """The part of a file that is being looked at."""

    def __init__(self, file: IO[str], path: str | Path) -> None:
        self.file, self.path = file, path
        self.text, self.position = "", 0
        self.decoder = json.JSONDecoder()

    def next(self) -> str:
        """The next character that is no white space; empty at the end of the file."""
        while True:
            space = SPACE.match(self.text, self.position)
            assert space is not None  # it may be empty
            self.position = space.end()
            if self.position < len(self.text):
                return self.text[self.position]
            if not self.read():
                return ""

    def expect(self, mark: str, what: str) -> None:
        """Step over a mark that must come next."""
        found = self.next()
        if found != mark:
            raise ValueError(f"{self.path}: expected {what}, found {found or 'the end'!r}")
        self.position += 1

    def decode(self) -> Any:
        """The value that comes next; more is read until it is whole."""
        self.next()
        while True:
            try:
                value, end = self.decoder.raw_decode(self.text, self.position)
            except RecursionError as error:
                raise ValueError(f"{self.path} is not valid JSON: {error}") from None
            except ValueError as error:
                if self.read():
                    continue
                raise ValueError(f"{self.path} is not valid JSON: {error}") from None
            # a number that is cut is a number too: only what follows says that it is whole
            if self.text[end : end + 1] in AFTER or not self.read():
                self.position = end
                return value

    def read(self) -> bool:
        """Drop what is behind, read on; False at the end of the file."""
        try:
            more = self.file.read(max(CHUNK, len(self.text) - self.position))
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.path} is not valid JSON: {error}") from None
        if more:
            self.text, self.position = self.text[self.position :] + more, 0
        return bool(more)
