"""The words of the questions and their numbers."""

from collections import Counter
from collections.abc import Iterable, Sequence

from data.text.fingerprint import WordList
from data.text.tokenizer import tokenize

PAD, UNK = 0, 1
SPECIAL = ("PAD", "UNK")  # upper case: no word of a question can be one of them


class Vocabulary(WordList):
    """Words in a fixed order; `words[0]` is the padding, `words[1]` stands for unknown words."""

    kind = "vocabulary"

    def __init__(self, words: Sequence[str]) -> None:
        if tuple(words[:2]) != SPECIAL:
            raise ValueError(f"a vocabulary begins with {SPECIAL}, this one with {words[:2]}")
        super().__init__(words)

    @classmethod
    def build(cls, texts: Iterable[str]) -> "Vocabulary":
        """All words, most frequent first, then by alphabet."""
        counts = Counter(word for text in texts for word in tokenize(text))
        return cls([*SPECIAL, *sorted(counts, key=lambda word: (-counts[word], word))])

    def encode(self, text: str, length: int) -> list[int]:
        """The numbers of the first `length` words, padded with PAD to exactly `length`.

        A question without words becomes one UNK, so that attention over its tokens has a token.
        """
        if length < 1:
            raise ValueError(f"a question needs a length of at least 1 token, not {length}")
        numbers = [self.index.get(word, UNK) for word in tokenize(text)[:length]] or [UNK]
        return numbers + [PAD] * (length - len(numbers))
