import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.text.vocabulary import PAD, UNK, Vocabulary
from tests.data.vqa.official_files import real_folder

TEXTS = ["What is the dog?", "is the cat red?", "the-dog"]


def test_words_go_by_frequency_then_alphabet():
    assert Vocabulary.build(TEXTS).words == ("PAD", "UNK", "the", "dog", "is", "cat", "red", "what")


@given(st.permutations(TEXTS))
def test_the_order_of_the_questions_changes_nothing(texts):
    assert Vocabulary.build(texts).fingerprint == Vocabulary.build(TEXTS).fingerprint


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The DOG, flies", ["the", "dog", "UNK", "PAD", "PAD"]),
        ("pad unk quux", ["UNK", "UNK", "UNK", "PAD", "PAD"]),
        ("the-dog is what the dog is", ["the", "dog", "is", "what", "the"]),
        *((empty, ["UNK", "PAD", "PAD", "PAD", "PAD"]) for empty in ("", "   ", "?!", "-")),
    ],
)
def test_a_question_is_its_first_words_unknown_ones_and_padding(text, words):
    vocabulary = Vocabulary.build(TEXTS)
    assert [vocabulary.words[number] for number in vocabulary.encode(text, length=5)] == words


@given(st.text(), st.integers(1, 20))
def test_every_question_has_exactly_the_length_and_at_least_one_token(text, length):
    vocabulary = Vocabulary.build(TEXTS)
    numbers = vocabulary.encode(text, length)
    assert len(numbers) == length
    assert numbers[0] != PAD
    num_tokens = sum(number != PAD for number in numbers)
    assert all(number == PAD for number in numbers[num_tokens:])
    assert max(numbers) < len(vocabulary)


def test_a_length_without_room_for_a_token_is_rejected():
    with pytest.raises(ValueError, match="at least 1 token"):
        Vocabulary.build(TEXTS).encode("the dog", length=0)


def test_a_vocabulary_begins_with_padding_and_unknown():
    with pytest.raises(ValueError, match="begins with"):
        Vocabulary(["dog", "cat"])


@pytest.mark.real
def test_real_questions_are_short_and_all_known():
    from data.vqa.data_folder import DataFolder
    from data.vqa.questions import load_questions

    questions = load_questions(DataFolder(real_folder()).question_files("train+val"))
    vocabulary = Vocabulary.build(questions.texts)
    encoded = [vocabulary.encode(text, 14) for text in questions.texts]
    assert len(questions) == 63 + 255
    assert not any(UNK in numbers for numbers in encoded)
