"""The list of answers a model chooses from, and the soft scores it learns."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from data.text.fingerprint import WordList
from data.vqa.normalisation import normalise_answer
from data.vqa.questions import Annotation

MIN_ANSWER_COUNT = 9  # VQA-v2's: rarer answers are not learnt
DEFAULT_COUNTS = (3, MIN_ANSWER_COUNT)  # of configs/data: custom, vqa_v2
UNLISTED = -1
SOFT_SCORES = (0.0, 0.3, 0.6, 0.9, 1.0)  # by how many of the ten gave the answer; 1 from four on


class AnswerList(WordList):
    """Normalised answers in a fixed order; each occurred `min_count` times or more, if known."""

    kind = "answer list"

    def __init__(self, words: Sequence[str], min_count: int | None = None) -> None:
        if not words:
            raise ValueError("the answer list is empty: no answer occurs often enough")
        super().__init__(words)
        self.min_count = min_count

    @classmethod
    def build(
        cls, annotations: Iterable[Annotation], min_count: int = MIN_ANSWER_COUNT
    ) -> "AnswerList":
        """The normalised majority answers that occur at least so often, most frequent first.

        Ties go by alphabet. The empty answer ("a" and "the" normalised) counts like any other:
        where people answer "a" and disagree, it is what the official metric compares.
        """
        check_min_count(min_count)
        counts = Counter(normalise_answer(each.multiple_choice_answer) for each in annotations)
        kept = [word for word, count in counts.items() if count >= min_count]
        if not kept:
            raise ValueError(
                f"none of the {len(counts)} answers occurs {min_count} times; "
                "give more annotations or a smaller data.min_answer_count"
            )
        return cls(sorted(kept, key=lambda word: (-counts[word], word)), min_count)

    def soft_scores(self, annotation: Annotation) -> tuple[list[int], list[float]]:
        """The listed answers among the ten, ascending, and .3, .6, .9 or 1 for each."""
        given = [self.index.get(normalise_answer(each), UNLISTED) for each in annotation.answers]
        counts = Counter(given)
        del counts[UNLISTED]  # which a Counter may lack
        numbers = sorted(counts)
        return numbers, [SOFT_SCORES[min(counts[number], 4)] for number in numbers]

    def state(self) -> dict[str, Any]:
        """Plain values for JSON and checkpoints."""
        # the stored format: an answer is listed when it occurs "more_than" that number of times
        more_than = None if self.min_count is None else self.min_count - 1
        return {**super().state(), "more_than": more_than}

    @classmethod
    def from_state(cls, state: Any, source: str) -> "AnswerList":
        """The answer list of a checkpoint or file; `source` names it in errors."""
        words, more_than = cls.check_state(state, source), state.get("more_than")
        return cls(words, more_than + 1 if type(more_than) is int else None)


def check_min_count(min_count: int) -> None:
    """Raise for a threshold below 1: every answer occurs at least once."""
    if min_count < 1:
        raise ValueError(
            f"min_answer_count is {min_count}, expected at least 1, which keeps every answer"
        )
