"""The words of a published MCAN, from the files that numbered them: its weights have no names."""

from collections.abc import Sequence
from typing import Any

from data.io.atomic_files import read_json
from data.text.answer_list import AnswerList
from data.text.tokenizer import tokenize
from data.text.vocabulary import SPECIAL, Vocabulary
from data.text.word_lists import Words
from data.vqa.json_entries import read_entries, take_text


def read_words(
    tokens: str | None,
    questions: Sequence[str],
    answers: str | None,
    *,
    num_words: int,
    num_answers: int,
    needed: bool = False,
) -> Words | None:
    """The words in the order of the weights' rows; None where none are given.

    `tokens` numbers the words, or `questions` are the files that they were numbered from; `answers`
    numbers the answers.
    """
    has_tokens = bool(tokens) or bool(questions)
    if has_tokens != bool(answers) or (needed and not has_tokens):
        raise ValueError(
            "tokens (or questions) and answers go together, and words_of needs them: the weights "
            "alone do not tell which row belongs to which word"
        )
    if not has_tokens:
        return None
    if tokens and questions:
        raise ValueError("give tokens or questions, not both")
    if tokens:
        words = order(read_json(tokens), tokens, "words", num_words)
        if tuple(words[:2]) != SPECIAL:
            raise ValueError(f"{tokens} numbers {words[:2]} 0 and 1, where MCAN has PAD and UNK")
    else:
        words = number_words(questions, num_words)
    assert answers is not None
    content = read_json(answers)
    numbered = content[0] if isinstance(content, list) and content else content
    return Words(Vocabulary(words), AnswerList(order(numbered, answers, "answers", num_answers)))


def order(numbers: Any, path: str, what: str, expected: int) -> list[str]:
    """The words of a JSON object {word: number}, by their numbers, which must be 0, 1, 2, …"""
    if not isinstance(numbers, dict) or not all(type(n) is int for n in numbers.values()):
        raise ValueError(f"{path} must hold an object that numbers {what}, such as {{'yes': 0}}")
    words = sorted(numbers, key=lambda word: numbers[word])
    if [numbers[word] for word in words] != list(range(len(words))):
        raise ValueError(f"{path} does not number its {len(words)} {what} 0, 1, 2, … once each")
    check_count(len(words), path, what, expected)
    return words


def number_words(paths: Sequence[str], expected: int) -> list[str]:
    """The words of question files by first occurrence, as MCAN numbers them."""
    seen: dict[str, None] = {}
    for path in paths:
        for number, entry in enumerate(read_entries(path, "questions")[0], 1):
            text = take_text(entry, "question", f"{path}: question number {number}")
            seen.update(dict.fromkeys(tokenize(text)))
    # openvqa has a third special word, which no question contains
    special = [*SPECIAL, "CLS"] if len(seen) + 3 == expected else [*SPECIAL]
    words = [*special, *seen]
    check_count(len(words), ", ".join(map(str, paths)), "words", expected)
    return words


def check_count(found: int, path: str, what: str, expected: int) -> None:
    """Raise when a file numbers more or fewer than the weights have rows."""
    if found != expected:
        raise ValueError(
            f"{path} numbers {found} {what}, but the weights know {expected}: it belongs to "
            f"another model"
        )
