import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from data.batching.examples import build_examples, load_examples
from data.text.answer_list import AnswerList
from data.text.vocabulary import Vocabulary
from data.text.word_lists import Words
from data.vqa.data_folder import DataFolder
from data.vqa.questions import load_annotations, load_questions
from tests.data.vqa.official_files import (
    make_annotation,
    make_question,
    real_folder,
    write_annotations,
    write_questions,
)

ANSWERS = AnswerList(["no", "yes", "red", "2"])
VOCABULARY = Vocabulary.build(["is it red", "how many dogs"])
WORDS = Words(VOCABULARY, ANSWERS)
TENS = [
    ["yes"] * 6 + ["no"] * 3 + ["maybe"],
    ["purple"] * 10,
    ["two"] * 2 + ["2"] + ["red"] + ["blue"] * 6,
]


@pytest.fixture
def folder(tmp_path):
    folder = DataFolder(tmp_path)
    texts = ["Is it red?", "", "How many dogs?"]
    write_questions(
        folder.questions("val"),
        [make_question(10 + row, text, image_id=row + 1) for row, text in enumerate(texts)],
    )
    annotations = [make_annotation(10 + row, ten, image_id=row + 1) for row, ten in enumerate(TENS)]
    write_annotations(folder.annotations("val"), annotations[::-1])
    write_questions(folder.questions("test"), [make_question(99)], "test2015")
    return folder


def test_rows_follow_the_question_file(folder):
    examples = load_examples(folder, "val", replace(WORDS, question_length=5))
    assert examples.question_ids.tolist() == [10, 11, 12]
    assert examples.image_ids.tolist() == [1, 2, 3]
    assert examples.tokens.shape == (3, 5)
    assert examples.tokens.dtype == np.int64
    assert examples.tokens[1].tolist() == [1, 0, 0, 0, 0]
    words = [VOCABULARY.words[n] for n in examples.tokens[2]]
    assert words == ["how", "many", "dogs", "PAD", "PAD"]
    assert examples.has_answers
    assert len(examples) == 3


def test_targets_are_the_soft_scores_of_each_question(folder):
    examples = load_examples(folder, "val", WORDS)
    assert examples.target_offsets.tolist() == [0, 2, 2, 4]
    assert examples.target_indices.tolist() == [0, 1, 2, 3]
    assert examples.target_scores.tolist() == np.float32([0.9, 1.0, 0.3, 0.9]).tolist()


def test_dense_targets_of_any_rows_are_a_loop_over_the_questions(folder):
    examples = load_examples(folder, "val", WORDS)
    annotations = load_annotations([folder.annotations("val")])[::-1]
    for rows in ([0, 1, 2], [2, 0], [1], [2, 2, 1, 0], []):
        expected = np.zeros((len(rows), len(ANSWERS)), dtype=np.float32)
        for place, row in enumerate(rows):
            for index, score in zip(*ANSWERS.soft_scores(annotations[row]), strict=True):
                expected[place, index] = score
        dense = examples.dense_targets(np.array(rows), len(ANSWERS))
        assert dense.dtype == np.float32
        np.testing.assert_array_equal(dense, expected)


def test_a_test_split_has_no_targets(folder):
    examples = load_examples(folder, "test", WORDS)
    assert not examples.has_answers
    assert examples.target_offsets.tolist() == [0, 0]
    assert examples.target_indices.size == examples.target_scores.size == 0
    assert not examples.dense_targets(np.array([0]), len(ANSWERS)).any()


def published_score(annotation):
    """mcan-vqa's own soft scores: by how often an answer is among those given, however many."""
    counts = Counter(entry["answer"] for entry in annotation["answers"])
    return {answer: {1: 0.3, 2: 0.6, 3: 0.9}.get(n, 1.0) for answer, n in counts.items()}


def test_visual_genomes_questions_are_added_under_ids_that_a_split_may_have_too(folder):
    asked = [make_question(10, "How many zebras?", 3), make_question(900, "", 2)]
    entries = [make_annotation(10, ["2"], image_id=3), make_annotation(900, ["red"] * 2 + ["no"])]
    for entry in entries:
        del entry["question_type"], entry["answer_type"], entry["multiple_choice_answer"]
    entries[1]["image_id"] = 2
    write_questions(folder.root / "VG_questions.json", asked, "vg")
    write_annotations(folder.root / "VG_annotations.json", entries)
    alone, both = (load_examples(folder, split, WORDS) for split in ("val", "vg+val"))
    assert both.question_ids.tolist() == [10, 11, 12, 10, 900]
    assert both.image_ids.tolist() == [1, 2, 3, 3, 2]
    assert [VOCABULARY.words[n] for n in both.tokens[3][:4]] == ["how", "many", "UNK", "PAD"]
    dense = both.dense_targets(np.arange(5), len(ANSWERS))
    expected = alone.dense_targets(np.arange(3), len(ANSWERS))
    np.testing.assert_array_equal(dense[:3], expected)
    for row, entry in zip(dense[3:], entries, strict=True):
        scores = {ANSWERS.words[n]: row[n] for n in np.flatnonzero(row)}
        assert scores == pytest.approx(published_score(entry))


def test_a_question_of_visual_genome_needs_an_answer(folder):
    write_questions(folder.root / "VG_questions.json", [make_question(5)])
    write_annotations(folder.root / "VG_annotations.json", [make_annotation(5, [])])
    with pytest.raises(ValueError, match=r"VG_annot.*question 5\) must have some answers, found 0"):
        load_examples(folder, "val+vg", WORDS)


def test_a_missing_annotation_file_of_val_is_an_error(folder):
    folder.annotations("val").unlink()
    with pytest.raises(FileNotFoundError, match=r"v2_mscoco_val2014_annotations\.json"):
        load_examples(folder, "val", WORDS)


def test_an_annotation_without_its_question_is_an_error(folder):
    questions = load_questions([folder.questions("test")])
    annotations = load_annotations([folder.annotations("val")])
    with pytest.raises(ValueError, match="3 annotations have no question"):
        build_examples(questions, annotations, WORDS)


def test_an_empty_split_has_empty_arrays(tmp_path):
    questions = load_questions([write_questions(tmp_path / "q.json", [])])
    examples = build_examples(questions, [], WORDS)
    assert examples.tokens.shape == (0, 14)
    assert examples.dense_targets(np.array([], dtype=np.int64), 4).shape == (0, 4)


@pytest.mark.real
def test_real_splits_combine():
    folder = DataFolder(real_folder())
    questions = load_questions(folder.question_files("train+val"))
    annotations = load_annotations(folder.annotation_files("train+val"))
    vocabulary = Vocabulary.build(questions.texts)
    answers = AnswerList.build(annotations, min_count=1)
    words = Words(vocabulary, answers)
    examples = load_examples(folder, "train+val", words)
    train = load_examples(folder, "train", words)
    assert len(examples) == 318
    np.testing.assert_array_equal(examples.tokens[:63], train.tokens)
    dense = examples.dense_targets(np.arange(318), len(answers))
    assert (dense.max(axis=1) > 0).all()
    raw = json.loads(folder.annotations("val").read_text())["annotations"]
    unanimous = [
        entry["question_id"]
        for entry in raw
        if len({answer["answer"] for answer in entry["answers"]}) == 1
    ]
    rows = np.flatnonzero(np.isin(examples.question_ids, unanimous))
    assert len(rows) > 50
    assert (dense[rows].sum(axis=1) == 1).all()
