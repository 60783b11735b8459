import pytest

from data.text.tokenizer import tokenize


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Is the man's hat red?", ["is", "the", "mans", "hat", "red"]),
        ('"What (is) *this*, #1: a;b!."', ["what", "is", "this", "1", "ab"]),
        ("black-and-white/grey", ["black", "and", "white", "grey"]),
        ("  tabs\tand\nnewlines ", ["tabs", "and", "newlines"]),
        ("-/?!", []),
        ("", []),
        ("50% $5 é", ["50%", "$5", "é"]),
    ],
)
def test_words_of_a_question(text, words):
    assert tokenize(text) == words
