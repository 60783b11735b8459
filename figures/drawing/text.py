"""Text as it can be drawn: characters that the font has, lines that fit."""

import bisect
import functools
import unicodedata

from matplotlib import font_manager
from matplotlib.ft2font import FT2Font, LoadFlags

FAMILY = "DejaVu Sans"  # comes with matplotlib, so that figures look alike everywhere
UNKNOWN = "□"  # for a character that the font lacks


@functools.cache
def find_font(bold: bool) -> str:
    """The file of the font that everything is written in."""
    weight = "bold" if bold else "normal"
    return font_manager.findfont(font_manager.FontProperties(family=FAMILY, weight=weight))


def load_font(bold: bool = False) -> FT2Font:
    """The font, this thread's own: FreeType aborts the process when two threads share one."""
    return font_manager.get_font(find_font(bold))  # which keeps one for each thread


@functools.cache
def known_characters() -> frozenset[int]:
    """The code points that both the plain and the bold font have."""
    return frozenset(load_font().get_charmap()) & frozenset(load_font(True).get_charmap())


def printable(text: str) -> str:
    """One line of characters that the font has; what it lacks becomes □, what is unseen goes."""
    seen = [c for c in " ".join(text.split()) if unicodedata.category(c)[0] != "C"]
    return "".join(c if ord(c) in known_characters() else UNKNOWN for c in seen)


def measure(text: str, size: float, bold: bool = False) -> float:
    """The width in points of a line of text."""
    font = load_font(bold)
    font.set_size(size, 72)
    font.set_text(text, 0, flags=LoadFlags.NO_HINTING)
    return float(font.get_width_height()[0]) / 64


def wrap(text: str, width: float, size: float, bold: bool = False, most: int = 3) -> list[str]:
    """Break a text into lines no wider than `width` points; what does not fit `most` ends in …"""
    lines: list[str] = []
    # a number keeps its unit and its name: neither "3 %" nor "K = 3" is broken
    rest = printable(text).replace(" %", "\u00a0%").replace(" = ", "\u00a0=\u00a0").split(" ")
    while rest and rest != [""]:
        line, rest = fill_line(rest, width, size, bold)
        lines.append(line)
    if len(lines) > most:
        lines = [*lines[: most - 1], cut(" ".join(lines[most - 1 :]), width, size, bold)]
    return lines


def fill_line(words: list[str], width: float, size: float, bold: bool) -> tuple[str, list[str]]:
    """The words that fit a line, and the others; a word that is too wide for any line is broken."""
    count = 1
    while count < len(words) and measure(" ".join(words[: count + 1]), size, bold) <= width:
        count += 1
    line = " ".join(words[:count])
    if count == 1 and measure(line, size, bold) > width:
        length = max(1, fitting(line, width, size, bold))
        return line[:length], [line[length:], *words[1:]]
    return line, words[count:]


def cut(text: str, width: float, size: float, bold: bool) -> str:
    """The beginning of a text with … after it, where it does not fit."""
    if measure(text, size, bold) <= width:
        return text
    return text[: fitting(text, width - measure("…", size, bold), size, bold)].rstrip() + "…"


def fitting(text: str, width: float, size: float, bold: bool) -> int:
    """How many characters of a text fit."""
    lengths = range(1, len(text) + 1)
    return bisect.bisect_right(lengths, width, key=lambda n: measure(text[:n], size, bold))
