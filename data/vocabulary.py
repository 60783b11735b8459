"""The words of the questions and their numbers."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from data.files import read_json, write_json
from data.seal import (
    advise_rebuilding,
    check_words,
    compute_fingerprint,
    open_seal,
    refuse_mixture,
    seal_words,
)
from data.tokenizer import tokenize

PAD, UNK = 0, 1
SPECIAL = ("PAD", "UNK")  # upper case: no word of a question can be one of them
KIND = "vocabulary"


class Vocabulary:
    """Words in a fixed order; `words[0]` is the padding, `words[1]` stands for unknown words."""

    def __init__(self, words: Sequence[str]) -> None:
        if tuple(words[:2]) != SPECIAL:
            raise ValueError(f"a vocabulary begins with {SPECIAL}, this one with {words[:2]}")
        check_words(KIND, words)
        self.words = tuple(words)
        self.index = {word: number for number, word in enumerate(self.words)}

    @classmethod
    def build(cls, texts: Iterable[str]) -> "Vocabulary":
        """All words, most frequent first, then by alphabet."""
        counts = Counter(word for text in texts for word in tokenize(text))
        return cls([*SPECIAL, *sorted(counts, key=lambda word: (-counts[word], word))])

    def encode(self, text: str, length: int = 14) -> list[int]:
        """The numbers of the first `length` words, padded with PAD to exactly `length`.

        A question without words becomes one UNK, so that attention over its tokens has a token.
        """
        if length < 1:
            raise ValueError(f"a question needs a length of at least 1 token, not {length}")
        numbers = [self.index.get(word, UNK) for word in tokenize(text)[:length]] or [UNK]
        return numbers + [PAD] * (length - len(numbers))

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 that tells this vocabulary from any other."""
        return compute_fingerprint(KIND, self.words)

    def state(self) -> dict[str, Any]:
        """Plain values for a checkpoint."""
        return seal_words(KIND, self.words)

    @classmethod
    def from_state(cls, state: Any, source: str) -> "Vocabulary":
        """The vocabulary of a checkpoint; `source` names it in errors."""
        return cls(open_seal(KIND, state, source))

    def save(self, path: str | Path) -> None:
        """Write the vocabulary as JSON."""
        write_json(path, self.state(), indent=0)

    @classmethod
    def load(cls, path: str | Path) -> "Vocabulary":
        """Read a vocabulary that `save` wrote; any other content is refused."""
        with advise_rebuilding():
            return cls.from_state(read_json(path), str(path))

    def refuse_other(self, expected: str, owner: str, source: str) -> None:
        """Raise unless `expected`, the fingerprint in `owner`, is the one of this vocabulary."""
        refuse_mixture(KIND, expected, self.fingerprint, owner, source)
