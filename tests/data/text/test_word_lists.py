"""Vocabulary and answers of a folder: built once, then kept."""

from pathlib import Path

import pytest

from data.io.atomic_files import write_json
from data.text.word_lists import Words, prepare_words
from tests.data.sample_folder import fill_folder
from tests.data.vqa.official_files import make_annotation, make_question


def test_words_come_from_train_and_val_and_are_saved(tmp_path: Path) -> None:
    folder = fill_folder(tmp_path)
    words = prepare_words(folder)
    assert words.built
    assert set(words.answers.words) == {"red", "blue"}
    assert {"what", "color", "thing", "0", "1", "2"} <= set(words.vocabulary.words)
    assert folder.vocabulary.is_file()
    assert folder.answers.is_file()


def test_words_that_are_there_are_kept_although_the_questions_changed(tmp_path: Path) -> None:
    folder = fill_folder(tmp_path)
    before = prepare_words(folder)
    fill_folder(tmp_path, number=40)
    after = prepare_words(folder)
    assert not after.built
    assert after.vocabulary.fingerprint == before.vocabulary.fingerprint
    assert after.answers.fingerprint == before.answers.fingerprint


def test_one_missing_file_is_built_and_the_other_kept(tmp_path: Path) -> None:
    folder = fill_folder(tmp_path)
    prepare_words(folder)
    kept = folder.answers.read_bytes(), folder.answers.stat().st_mtime_ns
    folder.vocabulary.unlink()
    assert prepare_words(folder).built
    assert (folder.answers.read_bytes(), folder.answers.stat().st_mtime_ns) == kept


def test_val_alone_or_nothing_is_an_error_that_names_the_files(tmp_path: Path) -> None:
    folder = fill_folder(tmp_path, splits=("val",))
    with pytest.raises(FileNotFoundError, match=r"v2_OpenEnded_mscoco_train2014_questions\.json"):
        prepare_words(folder)


def test_answers_too_rare_leave_nothing_behind(tmp_path: Path) -> None:
    folder = fill_folder(tmp_path, number=4)
    with pytest.raises(ValueError, match="occurs 9 times"):
        prepare_words(folder)
    assert not folder.vocabulary.exists()
    assert prepare_words(folder, min_answer_count=2).built


def test_an_annotation_without_a_question_is_rejected(tmp_path: Path) -> None:
    folder = fill_folder(tmp_path)
    write_json(folder.questions("val"), {"questions": [make_question(1, image_id=1)]})
    entries = [make_annotation(1, ["a"] * 10), make_annotation(77, ["a"] * 10)]
    write_json(folder.annotations("val"), {"annotations": entries})
    with pytest.raises(ValueError, match="77"):
        prepare_words(folder)


def test_the_threshold_is_remembered_and_a_negative_one_rejected(tmp_path: Path) -> None:
    folder = fill_folder(tmp_path)
    with pytest.raises(ValueError, match="min_answer_count is 0, expected at least 1"):
        prepare_words(folder, min_answer_count=0)
    assert prepare_words(folder, min_answer_count=4).answers.min_count == 4
    kept = prepare_words(folder, min_answer_count=6)
    assert kept.answers.min_count == 4
    carried = Words.from_state(kept.state(), "last.pt")
    assert carried.answers.min_count == 4
    with pytest.raises(ValueError, match="min_answer_count is 0"):
        prepare_words(folder, min_answer_count=0)


def test_a_list_without_its_threshold_is_read_as_before(tmp_path: Path) -> None:
    folder = fill_folder(tmp_path)
    words = prepare_words(folder)
    state = {key: value for key, value in words.answers.state().items() if key != "more_than"}
    write_json(folder.answers, state)
    assert prepare_words(folder).answers.words == words.answers.words


@pytest.mark.parametrize("name", ["vocabulary.json", "answers.json"])
@pytest.mark.parametrize("content", ["{", "[]", '{"format": "vocabulary", "version": 9}'])
def test_a_damaged_file_is_to_be_deleted(tmp_path: Path, name: str, content: str) -> None:
    folder = fill_folder(tmp_path)
    prepare_words(folder)
    (tmp_path / name).write_text(content)
    message = rf"{name}.*; delete it and run `make data` again"
    with pytest.raises(ValueError, match=message):
        prepare_words(folder)
    (tmp_path / name).unlink()
    assert prepare_words(folder).built
