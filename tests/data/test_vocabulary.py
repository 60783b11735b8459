import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.answers import AnswerList
from data.vocabulary import PAD, UNK, Vocabulary
from tests.data.official_files import real_folder

TEXTS = ["What is the dog?", "is the cat red?", "the-dog"]


def test_words_go_by_frequency_then_alphabet():
    assert Vocabulary.build(TEXTS).words == ("PAD", "UNK", "the", "dog", "is", "cat", "red", "what")


@given(st.permutations(TEXTS))
def test_the_order_of_the_questions_changes_nothing(texts):
    assert Vocabulary.build(texts).fingerprint == Vocabulary.build(TEXTS).fingerprint


def test_known_words_come_back_and_others_are_unknown():
    vocabulary = Vocabulary.build(TEXTS)
    numbers = vocabulary.encode("The DOG, flies", length=5)
    assert [vocabulary.words[number] for number in numbers] == ["the", "dog", "UNK", "PAD", "PAD"]


@pytest.mark.parametrize("text", ["", "   ", "?!", "-"])
def test_an_empty_question_becomes_one_unknown_word(text):
    assert Vocabulary.build(TEXTS).encode(text) == [UNK] + [PAD] * 13


def test_an_unknown_question_keeps_its_length():
    assert Vocabulary.build(TEXTS).encode("pad unk quux", length=4) == [UNK, UNK, UNK, PAD]


def test_a_question_of_fifty_words_keeps_its_first_fourteen():
    words = [f"w{number}" for number in range(50)]
    vocabulary = Vocabulary.build([" ".join(words)])
    numbers = vocabulary.encode(" ".join(words))
    assert [vocabulary.words[number] for number in numbers] == words[:14]


@given(st.text(), st.integers(1, 20))
def test_every_question_has_exactly_the_length_and_at_least_one_token(text, length):
    vocabulary = Vocabulary.build(TEXTS)
    numbers = vocabulary.encode(text, length)
    assert len(numbers) == length
    assert numbers[0] != PAD
    num_tokens = sum(number != PAD for number in numbers)
    assert all(number == PAD for number in numbers[num_tokens:])
    assert max(numbers) < len(vocabulary)


def test_a_length_without_room_for_a_token_is_refused():
    with pytest.raises(ValueError, match="at least 1 token"):
        Vocabulary.build(TEXTS).encode("the dog", length=0)


def test_saving_and_loading_gives_the_same_words(tmp_path):
    vocabulary = Vocabulary.build([*TEXTS, "ein größerer 犬"])
    vocabulary.save(tmp_path / "vocabulary.json")
    loaded = Vocabulary.load(tmp_path / "vocabulary.json")
    assert loaded.words == vocabulary.words
    assert loaded.fingerprint == vocabulary.fingerprint
    assert list(tmp_path.iterdir()) == [tmp_path / "vocabulary.json"]


def test_the_state_for_a_checkpoint_is_plain_and_comes_back():
    vocabulary = Vocabulary.build(TEXTS)
    state = json.loads(json.dumps(vocabulary.state()))
    assert Vocabulary.from_state(state, "checkpoint").words == vocabulary.words


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"words": ["PAD", "UNK", "dog", "the"]}, "changed after it was built"),
        ({"fingerprint": "0" * 64}, "changed after it was built"),
        ({"version": 2}, "version 2, this code reads version 1"),
        ({"format": "other"}, "holds no vocabulary"),
        ({"words": ["PAD", 3]}, "list of strings"),
        ({"words": None}, "list of strings"),
    ],
)
def test_a_changed_file_is_refused_by_name(tmp_path, change, message):
    path = tmp_path / "vocabulary.json"
    path.write_text(json.dumps(Vocabulary.build(TEXTS).state() | change))
    with pytest.raises(ValueError, match=message) as error:
        Vocabulary.load(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("content", ["[]", "{}", "3", '"words"', "{", ""])
def test_a_foreign_file_is_refused_by_name(tmp_path, content):
    path = tmp_path / "vocabulary.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"vocabulary\.json"):
        Vocabulary.load(path)


def test_an_answer_list_is_no_vocabulary(tmp_path):
    AnswerList(["PAD", "UNK"]).save(tmp_path / "answers.json")
    with pytest.raises(ValueError, match="holds no vocabulary"):
        Vocabulary.load(tmp_path / "answers.json")
    words = ["PAD", "UNK"]
    assert AnswerList(words).fingerprint != Vocabulary(words).fingerprint


def test_words_that_cannot_be_told_apart_or_written_are_refused():
    with pytest.raises(ValueError, match="'dog' twice"):
        Vocabulary(["PAD", "UNK", "dog", "dog"])
    with pytest.raises(ValueError, match="not valid Unicode"):
        Vocabulary(["PAD", "UNK", "\ud800"])
    with pytest.raises(ValueError, match="begins with"):
        Vocabulary(["dog", "cat"])


def test_a_checkpoint_with_another_vocabulary_is_refused_in_one_sentence():
    mine, other = Vocabulary.build(TEXTS), Vocabulary.build(["other words"])
    mine.refuse_other(mine.fingerprint, "runs/a/last.pt", "datasets/shapes/vocabulary.json")
    with pytest.raises(ValueError, match="another vocabulary") as error:
        mine.refuse_other(other.fingerprint, "runs/a/last.pt", "datasets/shapes/vocabulary.json")
    assert "runs/a/last.pt" in str(error.value)
    assert "datasets/shapes/vocabulary.json" in str(error.value)


@pytest.mark.real
def test_real_questions_are_short_and_all_known():
    from data.questions import load_questions
    from data.splits import Folder

    questions = load_questions(Folder(real_folder()).question_files("train+val"))
    vocabulary = Vocabulary.build(questions.texts)
    encoded = [vocabulary.encode(text) for text in questions.texts]
    assert len(questions) == 63 + 255
    assert not any(UNK in numbers for numbers in encoded)
