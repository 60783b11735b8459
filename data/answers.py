"""The list of answers a model chooses from, and the soft scores it learns."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from data.files import read_json, write_json
from data.normalise import normalise_answer
from data.questions import Annotation
from data.seal import (
    advise_rebuilding,
    check_words,
    compute_fingerprint,
    open_seal,
    refuse_mixture,
    seal_words,
)

KIND = "answer list"
SOFT_SCORES = (0.0, 0.3, 0.6, 0.9, 1.0)  # by how many of the ten gave the answer; 1 from four on


class AnswerList:
    """Normalised answers in a fixed order; each occurred `more_than` so many times, if known."""

    def __init__(self, words: Sequence[str], more_than: int | None = None) -> None:
        if not words:
            raise ValueError("the answer list is empty: no answer occurs often enough")
        check_words(KIND, words)
        self.words, self.more_than = tuple(words), more_than
        self.index = {word: number for number, word in enumerate(self.words)}

    @classmethod
    def build(cls, annotations: Iterable[Annotation], more_than: int = 8) -> "AnswerList":
        """The normalised majority answers that occur more than 8 times, most frequent first.

        Ties go by alphabet. The empty answer ("a" and "the" normalised) counts like any other:
        where people answer "a" and disagree, it is what the official metric compares.
        """
        check_threshold(more_than)
        counts = Counter(normalise_answer(each.multiple_choice_answer) for each in annotations)
        kept = [word for word, count in counts.items() if count > more_than]
        if not kept:
            raise ValueError(
                f"none of the {len(counts)} answers occurs more than {more_than} times; "
                "give more annotations or a smaller threshold"
            )
        return cls(sorted(kept, key=lambda word: (-counts[word], word)), more_than)

    def soft_scores(self, annotation: Annotation) -> tuple[list[int], list[float]]:
        """The listed answers among the ten, ascending, and .3, .6, .9 or 1 for each."""
        counts = Counter(map(normalise_answer, annotation.answers))
        scored = sorted(
            (self.index[word], SOFT_SCORES[min(count, 4)])
            for word, count in counts.items()
            if word in self.index
        )
        return [number for number, _ in scored], [score for _, score in scored]

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 that tells this list from any other."""
        return compute_fingerprint(KIND, self.words)

    def state(self) -> dict[str, Any]:
        """Plain values for a checkpoint."""
        return {**seal_words(KIND, self.words), "more_than": self.more_than}

    @classmethod
    def from_state(cls, state: Any, source: str) -> "AnswerList":
        """The answer list of a checkpoint; `source` names it in errors."""
        words, more_than = open_seal(KIND, state, source), state.get("more_than")
        return cls(words, more_than if type(more_than) is int else None)

    def save(self, path: str | Path) -> None:
        """Write the list as JSON."""
        write_json(path, self.state(), indent=0)

    @classmethod
    def load(cls, path: str | Path) -> "AnswerList":
        """Read a list that `save` wrote; any other content is refused."""
        with advise_rebuilding():
            return cls.from_state(read_json(path), str(path))

    def refuse_other(self, expected: str, owner: str, source: str) -> None:
        """Raise unless `expected`, the fingerprint in `owner`, is the one of this list."""
        refuse_mixture(KIND, expected, self.fingerprint, owner, source)


def check_threshold(more_than: int) -> None:
    """Raise when no number of occurrences could be too few."""
    if more_than < 0:
        raise ValueError(
            f"answers_more_than is {more_than}, expected at least 0, which keeps every answer"
        )
