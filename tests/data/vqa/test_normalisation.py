import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.reference.plain_accuracy import repair, strip_marks
from data.vqa.normalisation import (
    ARTICLES,
    CONTRACTIONS,
    MARKS,
    NUMBER_WORDS,
    clean_whitespace,
    normalise_answer,
)

# words and characters that the rules are about, so that drawn texts meet them often
PIECES = st.sampled_from([*MARKS, ".", " ", "1", "٣", "a", "The", "none", "dont", "\n", "\t", "é"])
HARD_TEXTS = st.one_of(st.text(), st.lists(PIECES, max_size=60).map("".join))


@pytest.mark.parametrize(
    ("answer", "normal"),
    [
        ("Yes", "yes"),
        ("the dog", "dog"),
        ("A", ""),
        ("An apple and the pear", "apple and pear"),
        ("None", "0"),
        ("twenty one", "twenty 1"),
        ("TEN", "10"),
        ("dont know", "don't know"),
        ("Im", "im"),  # the table has "Im", but words are lower case by then
        ("somebody'd", "somebodyd"),
        ("t-shirt", "t shirt"),
        ("black- white", "black white"),
        ("a-b c- d", "ab c d"),  # one dash beside a space: all dashes go
        ("red -blue-ish", "red blueish"),
        ("dogs\t-big-ish", "dogs bigish"),  # tabs and newlines count as spaces
        ("dogs\n-big-ish", "dogs bigish"),
        ("x;-y-z", "x y z"),  # a mark that became a space is not a space beside the next mark
        ("1,000", "1000"),
        ("1,000 t-shirts", "1000 tshirts"),  # a comma between digits: every mark goes
        ("red,white", "red white"),
        ("st. louis", "st louis"),
        ("3.5", "3.5"),
        ("3.", "3"),
        ("a.5", "a.5"),
        ("what?!", "what"),
        (" two\n\tdogs ", "2 dogs"),
        ("." * 40, "." * 8),  # at most 32 periods
        ("'quoted'", "'quoted'"),
    ],
)
def test_normal_forms(answer, normal):
    assert normalise_answer(answer) == normal


def test_the_tables_are_complete():
    assert (len(CONTRACTIONS), len(NUMBER_WORDS), len(ARTICLES), len(MARKS)) == (120, 12, 3, 21)


@given(HARD_TEXTS)
@example("1,2." + "." * 40)
@example(" ;")
def test_the_fast_normaliser_agrees_with_the_plain_one(text):
    assert normalise_answer(text) == repair(strip_marks(clean_whitespace(text)))
