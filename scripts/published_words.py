"""The words of a published MCAN, from the files that numbered them: its weights have no names."""

from typing import Any

from omegaconf import DictConfig

from data.answers import AnswerList
from data.files import read_json
from data.tokenizer import tokenize
from data.vocabulary import SPECIAL, Vocabulary
from data.words import Words
from mcan import Sizes
from scripts.settings import require_text


def read_words(config: DictConfig, sizes: Sizes) -> Words | None:
    """The words in the order of the weights' rows; None where none are given."""
    has_tokens = bool(config.tokens) or bool(config.questions)
    if has_tokens != bool(config.answers) or (config.words_of and not has_tokens):
        raise ValueError(
            "tokens (or questions) and answers go together, and words_of needs them: the weights "
            "alone do not tell which row belongs to which word"
        )
    if not has_tokens:
        return None
    if config.tokens and config.questions:
        raise ValueError("give tokens or questions, not both")
    if config.tokens:
        path = require_text("tokens", config.tokens)
        words = order(read_json(path), path, "words", sizes.num_words)
        if tuple(words[:2]) != SPECIAL:
            raise ValueError(f"{path} numbers {words[:2]} 0 and 1, where MCAN has PAD and UNK")
    else:
        words = number_words(list(config.questions), sizes.num_words)
    path = require_text("answers", config.answers)
    content = read_json(path)
    numbered = content[0] if isinstance(content, list) and content else content
    answers = order(numbered, path, "answers", sizes.num_answers)
    return Words(Vocabulary(words), AnswerList(answers))


def order(numbers: Any, path: str, what: str, expected: int) -> list[str]:
    """The words of a JSON object {word: number}, by their numbers, which must be 0, 1, 2, …"""
    if not isinstance(numbers, dict) or not all(type(n) is int for n in numbers.values()):
        raise ValueError(f"{path} must hold an object that numbers {what}, such as {{'yes': 0}}")
    words = sorted(numbers, key=lambda word: numbers[word])
    if [numbers[word] for word in words] != list(range(len(words))):
        raise ValueError(f"{path} does not number its {len(words)} {what} 0, 1, 2, … once each")
    refuse_other_count(len(words), path, what, expected)
    return words


def number_words(paths: list[str], expected: int) -> list[str]:
    """The words of question files by first occurrence, as MCAN numbers them."""
    seen: dict[str, None] = {}
    for path in paths:
        content = read_json(require_text("questions", path))
        if not isinstance(content, dict) or not isinstance(content.get("questions"), list):
            raise ValueError(f"{path} is no question file: it has no list 'questions'")
        for question in content["questions"]:
            text = question.get("question") if isinstance(question, dict) else None
            if not isinstance(text, str):
                raise ValueError(f"{path} holds a question without a text: {question}")
            seen.update(dict.fromkeys(tokenize(text)))
    # openvqa has a third special word, which no question contains
    special = [*SPECIAL, "CLS"] if len(seen) + 3 == expected else [*SPECIAL]
    words = [*special, *seen]
    refuse_other_count(len(words), ", ".join(map(str, paths)), "words", expected)
    return words


def refuse_other_count(found: int, path: str, what: str, expected: int) -> None:
    """Raise when a file numbers more or fewer than the weights have rows."""
    if found != expected:
        raise ValueError(
            f"{path} numbers {found} {what}, but the weights know {expected}: it belongs to "
            f"another model"
        )
