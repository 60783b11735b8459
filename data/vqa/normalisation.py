"""The official normaliser of answers, as the VQA evaluation applies it."""

import re
from functools import lru_cache
from pathlib import Path

from data.io.atomic_files import read_json

TABLES = read_json(Path(__file__).with_name("answer_tables.json"))
CONTRACTIONS: dict[str, str] = TABLES["contractions"]
NUMBER_WORDS: dict[str, str] = TABLES["number_words"]
ARTICLES = frozenset(TABLES["articles"])

MARKS = ';/[]"{}()=+\\_-><@`,?!'
DIGIT_COMMA_DIGIT = re.compile(r"\d,\d")
PERIOD_BEFORE_NO_DIGIT = re.compile(r"\.(?!\d)")
# The official code hands re.UNICODE (= 32) to `sub` in the place of its count.
MOST_PERIODS = 32


@lru_cache(maxsize=1 << 20)
def clean_whitespace(answer: str) -> str:
    """Newlines and tabs become spaces, the ends are stripped: applied to every answer."""
    return answer.replace("\n", " ").replace("\t", " ").strip()


@lru_cache(maxsize=1 << 20)
def normalise_answer(answer: str) -> str:
    """The normal form of an answer: punctuation, number words, articles, contractions."""
    return repair_words(strip_punctuation(clean_whitespace(answer)))


def strip_punctuation(text: str) -> str:
    """Delete or blank each mark, then delete the periods that no digit follows."""
    delete_all = DIGIT_COMMA_DIGIT.search(text) is not None
    stripped = text
    for mark in MARKS:
        if mark in text:
            # the untouched text decides, not what the marks before have left of it
            delete = delete_all or f"{mark} " in text or f" {mark}" in text
            stripped = stripped.replace(mark, "" if delete else " ")
    return PERIOD_BEFORE_NO_DIGIT.sub("", stripped, count=MOST_PERIODS)


def repair_words(text: str) -> str:
    """Lower case, number words to digits, articles dropped, apostrophes put back."""
    words = (NUMBER_WORDS.get(word, word) for word in text.lower().split())
    return " ".join(CONTRACTIONS.get(word, word) for word in words if word not in ARTICLES)
