"""The words of a command line, `key=value`, as Hydra's grammar wants them."""

import re

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Quote, QuotedString
from hydra.errors import HydraException

WORD = re.compile(r"([+~]*[\w/][\w./@-]*)=(.*)", re.DOTALL)  # no flag such as --config-dir=x


def quote_value(word: str) -> str:
    """Quote the value of a word that Hydra cannot read, as in results=/tmp/é(1).json.

    What begins like a list or a mapping is left as it is: it is a broken one, not a name.
    """
    match = WORD.fullmatch(word)
    if match is None or match[2].startswith(("[", "{")) or can_parse(word):
        return word
    return f"{match[1]}={quote_text(match[2])}"


def quote_text(value: object) -> str:
    """A value in quotes, which Hydra takes to the letter; true, as it is."""
    if value is True:
        return "true"
    return QuotedString(str(value), Quote.single).with_quotes()


def can_parse(word: str) -> bool:
    """Whether Hydra's grammar has this word."""
    try:
        OverridesParser.create().parse_override(word)
    except HydraException:
        return False
    return True


def choose_groups(words: list[str], groups: list[str]) -> list[str]:
    """The words that choose a file of a group, as data=custom does; the others change a value."""
    return [
        word
        for word in words
        if (key := word.split("=")[0].lstrip("+~").split("@")[0]) in groups or "/" in key
    ]
