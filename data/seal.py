"""Lists of words under a seal: a format, a version and a fingerprint that any change breaks."""

import contextlib
import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

VERSION = 1


def compute_fingerprint(kind: str, words: Sequence[str]) -> str:
    """The SHA-256 of a list of words and of what the list is for."""
    content = json.dumps([kind, VERSION, list(words)], ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(content.encode("ascii")).hexdigest()


def seal_words(kind: str, words: Sequence[str]) -> dict[str, Any]:
    """Plain values that JSON and a checkpoint can hold: format, version, fingerprint, words."""
    return {
        "format": kind,
        "version": VERSION,
        "fingerprint": compute_fingerprint(kind, words),
        "words": list(words),
    }


def open_seal(kind: str, value: Any, source: str) -> tuple[str, ...]:
    """The words of a sealed list; refuses another kind, another version and changed words."""
    if not isinstance(value, dict) or value.get("format") != kind:
        raise ValueError(f"{source} holds no {kind}")
    if value.get("version") != VERSION:
        raise ValueError(
            f"{source} has {kind} format version {value.get('version')!r}, this code reads "
            f"version {VERSION}"
        )
    words = value.get("words")
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError(f"{source} must have a list of strings under 'words'")
    if value.get("fingerprint") != compute_fingerprint(kind, words):
        raise ValueError(
            f"{source} was changed after it was built (its fingerprint does not fit its words)"
        )
    return tuple(words)


@contextlib.contextmanager
def advise_rebuilding() -> Iterator[None]:
    """Say what to do about a damaged file of words that `make data` can build again."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{error}; delete it and run `make data` again") from None


def check_words(kind: str, words: Sequence[str]) -> None:
    """Refuse a word that is there twice (two indices for one meaning) or that no file can hold."""
    seen: set[str] = set()
    for word in words:
        if word in seen:
            raise ValueError(f"the {kind} holds '{word}' twice; every entry must be there once")
        if any("\ud800" <= character <= "\udfff" for character in word):
            raise ValueError(f"the {kind} holds {word!r}, which is not valid Unicode; correct it")
        seen.add(word)


def refuse_mixture(kind: str, expected: str, found: str, owner: str, source: str) -> None:
    """Raise when the fingerprint that `owner` (a checkpoint) expects is not the one of `source`."""
    if expected != found:
        raise ValueError(
            f"{owner} was made with another {kind} (fingerprint {expected[:12]}) than {source} "
            f"({found[:12]}); use the data folder it was trained on or the {kind} stored in it"
        )
