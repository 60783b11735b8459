"""The words of a command line, `key=value`, as Hydra's grammar wants them."""

import re
from collections.abc import Sequence

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Quote, QuotedString
from hydra.errors import HydraException

WORD = re.compile(r"([+~]*[\w/][\w./@-]*)=(.*)", re.DOTALL)  # no flag such as --config-dir=x
RATE = re.compile(r"optim\.rate=\{")
OPTION = re.compile(r"attention\.[\w.]+=")
NAMES = re.compile(r"\[([^\[\]{}'\"]+)\]")  # a list of names: nothing nested, nothing quoted


def quote_value(word: str) -> str:
    """Quote the value of a word that Hydra cannot read, as in results=/tmp/é(1).json.

    Each name of a plain list is quoted so. What else begins like a list or a mapping is left as it
    is: it is a broken one, not a name.
    """
    match = WORD.fullmatch(word)
    if match is None or can_parse(word):
        return word
    if (names := NAMES.fullmatch(match[2])) is not None:
        return f"{match[1]}=[{','.join(quote_text(name.strip()) for name in names[1].split(','))}]"
    return word if match[2].startswith(("[", "{")) else f"{match[1]}={quote_text(match[2])}"


def quote_text(value: object) -> str:
    """A value in quotes, which Hydra takes to the letter; true, as it is."""
    if value is True:
        return "true"
    return QuotedString(str(value), Quote.single).with_quotes()


def quote_literal(word: str, keys: Sequence[str]) -> str:
    """Quote the value of one of these settings, unless it is in quotes already."""
    key, _, value = word.partition("=")
    is_quoted = len(value) > 1 and value[0] in "'\"" and value[-1] == value[0]
    if key not in keys or not value or is_quoted or value == "null":
        return word
    return f"{key}={quote_text(value)}"


def can_parse(word: str) -> bool:
    """Whether Hydra's grammar has this word."""
    try:
        return bool(parse_words([word]))
    except ValueError:
        return False


def parse_words(words: Sequence[str]) -> list[Override]:
    """The words as Hydra reads them."""
    try:
        return OverridesParser.create().parse_overrides(list(words))
    except HydraException as error:
        raise ValueError(one_line(error)) from None


def list_combinations(words: Sequence[str]) -> list[list[str]]:
    """The words of every job that `key=value,value` asks for, as Hydra's own sweeper has them."""
    (combinations,) = BasicSweeper.split_arguments(parse_words(words), max_batch_size=None)
    return combinations


def to_overrides(words: Sequence[str]) -> list[str]:
    """The words as Hydra's overrides, which add and replace more than it would by itself.

    optim.rate={…} replaces the whole learning rate: Hydra would keep the other keys.
    attention.<option>=… may be one that no YAML lists: the head itself says whether it has it.
    """
    overrides = []
    for word in words:
        if RATE.match(word):
            overrides += ["~optim.rate", f"+{word}"]
        else:
            overrides.append(f"++{word}" if OPTION.match(word) else word)
    return overrides


def one_line(error: BaseException) -> str:
    """An error's words on one line; those of its cause, or its name, where it has none."""
    cause = error.__cause__ or error.__context__
    return " ".join(str(error).split()) or (one_line(cause) if cause else type(error).__name__)
