import json

import numpy as np
import pytest

from data.vqa.data_folder import DataFolder
from data.vqa.questions import load_annotations, load_questions, match_annotations
from tests.data.vqa.official_files import (
    make_annotation,
    make_question,
    real_folder,
    write_annotations,
    write_questions,
)

TEN = ["yes"] * 6 + ["no"] * 4
ABSENT = object()


def test_questions_keep_the_order_of_their_files(tmp_path):
    first = write_questions(
        tmp_path / "a.json", [make_question(7, "B?", 3), make_question(5)], "train2014"
    )
    second = write_questions(tmp_path / "b.json", [make_question(6, "C?", 2)])
    questions = load_questions([first, second])
    assert questions.ids.tolist() == [7, 5, 6]
    assert questions.image_ids.tolist() == [3, 1, 2]
    assert questions.texts == ["B?", "what is it?", "C?"]
    assert questions.ids.dtype == questions.image_ids.dtype == np.int64
    assert questions.subtype == "train2014+val2014"
    assert len(questions) == 3


def test_annotations_hold_the_ten_answers_in_order(tmp_path):
    path = write_annotations(tmp_path / "a.json", [make_annotation(7, TEN, "no", 3)])
    (annotation,) = load_annotations([path])
    assert annotation.answers == tuple(TEN)
    assert (annotation.question_id, annotation.image_id) == (7, 3)
    assert (annotation.question_type, annotation.answer_type) == ("what is", "other")
    assert annotation.multiple_choice_answer == "no"


def test_a_further_key_named_answer_does_not_hide_an_annotation(tmp_path):
    entry = make_annotation(7, TEN) | {"answer": "yes"}
    (annotation,) = load_annotations([write_annotations(tmp_path / "a.json", [entry])])
    assert annotation.answers == tuple(TEN)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"image_id": 1, "question": "a?"}, "number 2 has no 'question_id'"),
        ({"question_id": 2, "question": "a?"}, "number 2 has no 'image_id'"),
        ({"question_id": 2, "image_id": 1}, "number 2 has no 'question'"),
        (make_question(True), "'question_id' must be a non-negative integer, not True"),
        (make_question("2"), "'question_id' must be a non-negative integer, not '2'"),
        (make_question(2.0), "'question_id' must be a non-negative integer, not 2.0"),
        (make_question(-1), "'question_id' must be a non-negative integer, not -1"),
        (make_question(2**63), "'question_id' must be a non-negative integer"),
        (make_question(2, None), "'question' must be a string, not None"),
        ("text", "number 2 has no 'question_id'"),
        (None, "number 2 has no 'question_id'"),
    ],
)
def test_a_malformed_question_is_named(tmp_path, entry, message):
    path = write_questions(tmp_path / "q.json", [make_question(1), entry])
    with pytest.raises(ValueError, match=message) as error:
        load_questions([path])
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answers": None}, "must have 10 answers, found no list"),
        ({"answers": []}, "must have 10 answers, found 0"),
        ({"answers": [{"answer": "a"}]}, "must have 10 answers, found 1; repeat it"),
        ({"answers": [{"answer": "a"}] * 9}, "must have 10 answers, found 9"),
        ({"answers": [{"answer": "a"}] * 9 + [{"answer": 1}]}, "must be a string, not 1"),
        ({"answers": [{"answer": "a"}] * 9 + [{}]}, "has no 'answer'"),
        ({"answers": [{"answer": "a"}] * 9 + [None]}, "has no 'answer'"),
        ({"multiple_choice_answer": 2}, "'multiple_choice_answer' must be a string"),
        ({"answer_type": None}, "'answer_type' must be a string"),
        ({"image_id": None}, "'image_id' must be"),
        ({"answers": ABSENT, "answer": "yes"}, r"number 1 \(question 77\) has no 'answers'"),
    ],
)
def test_a_malformed_annotation_is_named_with_its_question(tmp_path, change, message):
    entry = make_annotation(77, TEN) | change
    entry = {key: value for key, value in entry.items() if value is not ABSENT}
    path = write_annotations(tmp_path / "a.json", [entry])
    with pytest.raises(ValueError, match=message) as error:
        load_annotations([path])
    assert str(path) in str(error.value)
    assert "question 77" in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *((each, "is not valid JSON") for each in ("", "{", '{"questions": []}\n{}', "\xff")),
        ('{"questions": [' + "1" * 5000 + "]}", "is not valid JSON"),  # an integer too long
        *((each, "must be a JSON object") for each in ("[]", "3", '{"questions": 3}', "{}")),
    ],
)
@pytest.mark.parametrize("load", [load_questions, load_annotations])
def test_a_foreign_file_is_named(tmp_path, load, content, message):
    path = tmp_path / "file.json"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(ValueError, match=rf"file\.json {message}"):
        load([path])


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.json does not exist"):
        load_questions([tmp_path / "none.json"])


def test_an_id_in_two_files_is_rejected(tmp_path):
    first = write_questions(tmp_path / "a.json", [make_question(n) for n in (1, 2, 3)])
    second = write_questions(tmp_path / "b.json", [make_question(n) for n in (3, 4)])
    with pytest.raises(ValueError, match=r"1 question ids occur more than once \(3\)"):
        load_questions([first, second])
    path = write_annotations(tmp_path / "c.json", [make_annotation(5, TEN)] * 2)
    with pytest.raises(ValueError, match=r"more than once \(5\)"):
        load_annotations([path])


def load_pair(tmp_path, questions, annotations):
    return (
        load_questions([write_questions(tmp_path / "q.json", questions)]),
        load_annotations([write_annotations(tmp_path / "a.json", annotations)]),
    )


def test_matching_puts_annotations_into_the_order_of_the_questions(tmp_path):
    questions, annotations = load_pair(
        tmp_path,
        [make_question(n) for n in (3, 1, 2)],
        [make_annotation(n, TEN) for n in (1, 2, 3)],
    )
    matched = match_annotations(questions, annotations)
    assert [annotation.question_id for annotation in matched] == [3, 1, 2]


@pytest.mark.parametrize(
    ("asked", "annotated", "message"),
    [
        ([1, 2], [1, 2, 8, 9], r"2 annotations have no question \(8, 9\)"),
        ([1, 2, 3], [1, 2], r"1 questions have no annotation \(3\)"),
        ([1], [2], r"1 annotations have no question \(2\)"),
        (range(1, 10), [1], r"8 questions have no annotation \(2, 3, 4, 5, 6, …\)"),
    ],
)
def test_what_has_no_partner_is_named(tmp_path, asked, annotated, message):
    questions, annotations = load_pair(
        tmp_path,
        [make_question(n) for n in asked],
        [make_annotation(n, TEN) for n in annotated],
    )
    with pytest.raises(ValueError, match=message):
        match_annotations(questions, annotations)


def test_an_annotation_of_another_image_is_rejected(tmp_path):
    questions, annotations = load_pair(
        tmp_path, [make_question(1, image_id=4)], [make_annotation(1, TEN, image_id=5)]
    )
    with pytest.raises(ValueError, match=r"question 1 is about image 4, its annotation .* image 5"):
        match_annotations(questions, annotations)


@pytest.mark.real
@pytest.mark.parametrize(("split", "count"), [("train", 63), ("val", 255), ("train+val", 318)])
def test_real_files_load_and_match(split, count):
    folder = DataFolder(real_folder())
    questions = load_questions(folder.question_files(split))
    annotations = match_annotations(questions, load_annotations(folder.annotation_files(split)))
    assert len(questions) == len(annotations) == count
    first = json.loads(folder.annotation_files(split)[-1].read_text())["annotations"][0]
    (same,) = [each for each in annotations if each.question_id == first["question_id"]]
    assert list(same.answers) == [answer["answer"] for answer in first["answers"]]
    for question_id, image_id in zip(questions.ids, questions.image_ids, strict=True):
        name = "val" if split == "val" or question_id in questions.ids[63:] else "train"
        assert folder.image(name, int(image_id)).stat().st_size > 0
