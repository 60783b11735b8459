"""Questions and answers of any Unicode, compared with a second implementation."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks.reference.plain_accuracy import repair, score_question, strip_marks
from data.text.answer_list import AnswerList
from data.text.tokenizer import tokenize
from data.text.vocabulary import PAD, UNK, Vocabulary
from data.vqa.accuracy import score_answer
from data.vqa.normalisation import MARKS, clean_whitespace, normalise_answer
from data.vqa.questions import load_questions
from data.vqa.results import check_results, load_results, write_results
from tests.data.vqa.official_files import make_question, write_questions
from tests.faults.fuzzing import CASES

DROPPED = ".,'!?\"()*#:;"
ANY = st.text(st.characters(codec="utf-8"), max_size=60)  # all but lone surrogates
# what the official rules change: punctuation, digits, articles, number words, spaces
PIECES = [
    *MARKS, ".", ",", " ", "  ", "\n", "\t", "\r", "\u00a0", "\u3000", "\u2028", "1", "2,0", "٣",
    "a", "an", "the", "The", "ten", "None", "dont", "wont", "İ", "ß", "'", "…",
]  # fmt: skip
ANSWERS = st.one_of(ANY, st.lists(st.sampled_from(PIECES), max_size=14).map("".join))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("text")


def plain_tokens(question):
    """The tokens of a question, computed character by character."""
    kept = ["" if c in DROPPED else " " if c in "-/" else c for c in question.lower()]
    return "".join(kept).split()


@settings(max_examples=800)
@given(st.lists(ANY, min_size=1, max_size=4))
@example(["İstanbul?", "ﬁne—dash", "\u0000", "ǅ", "ΑΣ"])
def test_questions_of_any_unicode_are_tokenized_and_read_back(folder, texts):
    CASES["questions"] += 1
    path = folder / "questions.json"
    write_questions(path, [make_question(n, text) for n, text in enumerate(texts)])
    read = load_questions([path])
    assert read.texts == texts
    vocabulary = Vocabulary.build(read.texts)
    vocabulary.save(folder / "vocabulary.json")
    assert Vocabulary.load(folder / "vocabulary.json").words == vocabulary.words
    for text in texts:
        words = tokenize(text)
        assert words == plain_tokens(text)
        numbers = vocabulary.encode(text, 14)
        assert len(numbers) == 14
        assert UNK not in numbers[: len(words)]  # every word was counted
        assert [vocabulary.words[n] for n in numbers if n > UNK] == words[:14]
        assert numbers[max(1, len(words)) :] == [PAD] * (14 - max(1, len(words)))


@settings(max_examples=500)
@given(ANY, st.characters(categories=["Cs"]), ANY)
def test_a_lone_surrogate_is_rejected_with_its_position(folder, before, surrogate, after):
    CASES["questions with lone surrogates"] += 1
    text = before + surrogate + after
    path = folder / "halved.json"
    write_questions(path, [make_question(1, "what?"), make_question(2, text)])
    with pytest.raises(ValueError, match=r"halved\.json: question number 2.* not valid Unicode"):
        load_questions([path])
    with pytest.raises(ValueError, match="not valid Unicode"):
        AnswerList([text])


@settings(max_examples=2500)
@given(ANSWERS)
@example("1,000. a.b.c 3.5.")
@example("." * 40)
@example("a the an")
def test_answers_are_normalised_like_the_plain_transcription(answer):
    CASES["answers"] += 1
    cleaned = answer.replace("\n", " ").replace("\t", " ").strip()
    assert clean_whitespace(answer) == cleaned
    assert normalise_answer(answer) == repair(strip_marks(cleaned))


@settings(max_examples=1200)
@given(
    st.lists(ANSWERS, min_size=1, max_size=4),
    st.lists(st.integers(0, 3), min_size=10, max_size=10),
    ANSWERS,
    st.integers(0, 4),
)
def test_answers_are_scored_like_the_plain_transcription(given_, choices, other, pick):
    CASES["scores"] += 1
    answers = tuple(given_[n % len(given_)] for n in choices)
    prediction = other if pick == 4 else given_[pick % len(given_)]
    assert score_answer(prediction, answers) == pytest.approx(
        score_question(prediction, list(answers)), abs=1e-12
    )


@settings(max_examples=500)
@given(st.lists(ANY, min_size=1, max_size=6, unique=True))
def test_result_files_keep_answers_of_any_unicode(folder, answers):
    CASES["result files"] += 1
    path = folder / "results.json"
    write_results(path, range(len(answers)), answers)
    assert load_results(path) == dict(enumerate(answers))
    check_results(path, np.arange(len(answers)), set(answers), "questions.json")
    listed = AnswerList(answers)
    listed.save(folder / "answers.json")
    assert AnswerList.load(folder / "answers.json").words == tuple(answers)
