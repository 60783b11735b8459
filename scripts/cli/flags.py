"""Hydra's flags: accepted anywhere on a command line, with one sentence for a wrong one."""

import argparse
from collections.abc import Sequence
from itertools import pairwise
from typing import NoReturn

from hydra._internal.utils import get_args_parser

INFO = ("--info", "-i")


def parse_flags(words: Sequence[str]) -> argparse.Namespace:
    """Every flag, and all other words as `overrides`; ValueError for what is no flag of Hydra's."""
    parser = get_args_parser()

    def fail(message: str) -> NoReturn:
        raise ValueError(f"{message}; --help lists the settings and the flags")

    parser.error = fail  # type: ignore[method-assign]
    (choices,) = (each.choices or () for each in parser._actions if each.dest == "info")
    # a bare --info would take the setting behind it for what is to be shown
    named = [
        "--info=all" if word in INFO and after not in choices else word
        for word, after in pairwise([*words, ""])
    ]
    return parser.parse_intermixed_args(named)


def list_flags(arguments: argparse.Namespace) -> list[str]:
    """The flags as words of a command line."""
    words = []
    for action in get_args_parser()._actions:
        value = getattr(arguments, action.dest, None)
        if action.option_strings and value not in (None, False):
            flag = max(action.option_strings, key=len)
            words.append(flag if value is True else f"{flag}={value}")
    return words


def starts_nothing(arguments: argparse.Namespace) -> bool:
    """Whether a flag asks to show something, instead of starting a job."""
    return bool(
        arguments.help
        or arguments.hydra_help
        or arguments.cfg
        or arguments.info
        or arguments.shell_completion
    )
