"""What the vocabulary and the answer list have in common: they are stored with a fingerprint."""

import json

import pytest

from data.text.answer_list import AnswerList
from data.text.vocabulary import Vocabulary

LISTS = [Vocabulary.build(["what is the dog?", "ein größerer 犬"]), AnswerList(["yes", "", "café"])]


@pytest.mark.parametrize("words", LISTS)
def test_a_file_and_a_checkpoint_give_the_same_words_back(tmp_path, words):
    words.save(tmp_path / "words.json")
    assert list(tmp_path.iterdir()) == [tmp_path / "words.json"]
    state = json.loads(json.dumps(words.state()))
    for loaded in (type(words).load(tmp_path / "words.json"), type(words).from_state(state, "x")):
        assert (loaded.words, loaded.index) == (words.words, words.index)
        assert (loaded.fingerprint, len(loaded)) == (words.fingerprint, len(words))


@pytest.mark.parametrize("words", LISTS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"words": ["PAD", "UNK", "dog", "the"]}, "changed after it was built"),
        ({"fingerprint": "0" * 64}, "changed after it was built"),
        ({"version": 2}, "version 2, this code reads version 1"),
        ({"format": "other"}, "holds no (vocabulary|answer list)"),
        ({"words": ["PAD", 3]}, "list of strings"),
        ({"words": None}, "list of strings"),
    ],
)
def test_a_changed_file_is_rejected_by_name(tmp_path, words, change, message):
    path = tmp_path / "words.json"
    path.write_text(json.dumps(words.state() | change))
    with pytest.raises(ValueError, match=message) as error:
        type(words).load(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("content", ["[]", "{}", "3", '"words"', "{", ""])
def test_a_foreign_file_is_rejected_by_name(tmp_path, content):
    path = tmp_path / "vocabulary.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"vocabulary\.json"):
        Vocabulary.load(path)


def test_lists_for_two_purposes_are_not_confused(tmp_path):
    same = ["PAD", "UNK"]
    assert AnswerList(same).fingerprint != Vocabulary(same).fingerprint
    for kind, other in ((AnswerList, Vocabulary), (Vocabulary, AnswerList)):
        other(same).save(tmp_path / "words.json")
        with pytest.raises(ValueError, match=f"holds no {kind.kind}"):
            kind.load(tmp_path / "words.json")


def test_words_that_are_ambiguous_or_cannot_be_written_are_rejected():
    with pytest.raises(ValueError, match="'dog' twice"):
        Vocabulary(["PAD", "UNK", "dog", "dog"])
    with pytest.raises(ValueError, match="not valid Unicode"):
        AnswerList(["yes", "\ud800"])


@pytest.mark.parametrize("words", LISTS)
def test_a_checkpoint_with_another_list_is_rejected_in_one_sentence(words):
    other = type(words)([*words.words, "more"])
    words.check_same(words.fingerprint, "runs/a/last.pt", "datasets/a/words.json")
    message = f"^runs/a/last.pt was made with another {words.kind} .* than datasets/a/words.json"
    with pytest.raises(ValueError, match=message):
        words.check_same(other.fingerprint, "runs/a/last.pt", "datasets/a/words.json")
