"""Text that fits and that the font can draw."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from figures.drawing.text import (
    UNKNOWN,
    cut,
    known_characters,
    load_font,
    measure,
    printable,
    wrap,
)
from tests.figures.drawing.sample_panels import NASTY


def test_what_the_font_lacks_is_replaced_and_what_cannot_be_seen_is_dropped():
    assert printable("a\t b\nc") == "a b c"
    assert printable("$x^2$ \\alpha é ≥ 漢") == f"$x^2$ \\alpha é ≥ {UNKNOWN}"
    assert printable("\u202eabc\x00\u200b") == "abc"
    assert set(map(ord, printable(NASTY))) <= known_characters()


@given(st.text(max_size=300), st.floats(30, 400))
def test_lines_are_no_wider_than_asked_and_no_more_than_asked(text, width):
    lines = wrap(text, width, 8.0, most=3)
    assert len(lines) <= 3
    assert all(measure(line, 8.0) <= width for line in lines)


def test_wrapping_loses_no_word_unless_it_says_so():
    text = "How many of the small green triangles lie to the left of the large one?"
    assert " ".join(wrap(text, 120, 8.0, most=9)) == text
    shortened = wrap(text, 120, 8.0, most=2)
    assert shortened[-1].endswith("…")
    assert text.startswith(" ".join(shortened)[:-1])


@pytest.mark.parametrize("width", range(40, 200, 8))
def test_a_number_is_not_parted_from_its_percent_sign(width):
    lines = wrap("Answers: red, 29 %; blue, 20 %; green, 6 %; pink, 4 %", width, 8.0, most=9)
    assert not [line for line in lines if line.startswith("%")]
    lines = wrap("multimodal, entmax15, paraboloid, K* = 3", width, 8.0, most=9)
    assert not [line for line in lines if line.startswith("=") or line.endswith("=")]


def test_a_word_wider_than_the_line_is_broken():
    word = "x" * 200
    assert "".join(wrap(word, 100, 8.0, most=99)) == word


@pytest.mark.parametrize("text", ["short", "a text that is far too long for so little room"])
def test_a_cut_text_fits_and_begins_alike(text):
    cut_text = cut(text, 60, 8.0, False)
    assert measure(cut_text, 8.0) <= 60
    assert text.startswith(cut_text.removesuffix("…"))


def test_threads_that_measure_at_once_share_no_font():
    texts = [("0.50", 11.0, False), ("a much longer heading in bold", 7.0, True)]
    widths = [measure(*text) for text in texts]
    start = threading.Barrier(2)

    def visit(text):
        start.wait(10)
        fonts = load_font(), load_font(True)
        start.wait(10)  # both are held, so none can be made where the other was
        return fonts

    def measure_often(text):
        return {measure(*text) for _ in range(300)}

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(visit, texts)
        assert not {*map(id, first)} & {*map(id, second)}
        assert list(pool.map(measure_often, texts)) == [{width} for width in widths]
