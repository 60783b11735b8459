"""Lists of words that are stored with a fingerprint, which any change of the words breaks."""

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

from data.io.atomic_files import read_json, write_json

VERSION = 1


class WordList:
    """Different words in a fixed order; `kind` says what the list is for."""

    kind: ClassVar[str]

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        self.index = {word: number for number, word in enumerate(self.words)}
        for number, word in enumerate(self.words):
            if self.index[word] != number:
                raise ValueError(
                    f"the {self.kind} holds '{word}' twice; every entry must be there once"
                )
            if any("\ud800" <= character <= "\udfff" for character in word):
                raise ValueError(
                    f"the {self.kind} holds {word!r}, which is not valid Unicode; correct it"
                )

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 that tells this list, and what it is for, from any other."""
        return compute_fingerprint(self.kind, self.words)

    def state(self) -> dict[str, Any]:
        """Plain values for JSON and checkpoints."""
        return {
            "format": self.kind,
            "version": VERSION,
            "fingerprint": self.fingerprint,
            "words": list(self.words),
        }

    @classmethod
    def from_state(cls, state: Any, source: str) -> Self:
        """The list of a checkpoint or file; `source` names it in errors."""
        return cls(cls.check_state(state, source))

    @classmethod
    def check_state(cls, state: Any, source: str) -> list[str]:
        """The words of a stored list; raise on another kind, another version or changed words."""
        if not isinstance(state, dict) or state.get("format") != cls.kind:
            raise ValueError(f"{source} holds no {cls.kind}")
        if state.get("version") != VERSION:
            raise ValueError(
                f"{source} has {cls.kind} format version {state.get('version')!r}, this code reads "
                f"version {VERSION}"
            )
        words = state.get("words")
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ValueError(f"{source} must have a list of strings under 'words'")
        if state.get("fingerprint") != compute_fingerprint(cls.kind, words):
            raise ValueError(
                f"{source} was changed after it was built (its fingerprint does not fit its words)"
            )
        return words

    def save(self, path: str | Path) -> None:
        """Write the list as JSON."""
        write_json(path, self.state(), indent=0)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a list that `save` wrote; any other content raises."""
        try:
            return cls.from_state(read_json(path), str(path))
        except ValueError as error:
            raise ValueError(f"{error}; delete it and run `make data` again") from None

    def check_same(self, expected: str, owner: str, source: str) -> None:
        """Raise unless `expected`, the fingerprint in `owner`, is the one of this list."""
        if expected != self.fingerprint:
            raise ValueError(
                f"{owner} was made with another {self.kind} (fingerprint {expected[:12]}) than "
                f"{source} ({self.fingerprint[:12]}); use the data folder it was trained on or the "
                f"{self.kind} stored in it"
            )


def compute_fingerprint(kind: str, words: Sequence[str]) -> str:
    """The SHA-256 of a list of words and of what the list is for."""
    content = json.dumps([kind, VERSION, list(words)], ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(content.encode("ascii")).hexdigest()
