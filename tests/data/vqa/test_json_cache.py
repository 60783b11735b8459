"""Files that are parsed once, and again when they change."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from data.io.locks import is_locked
from data.vqa import json_cache
from data.vqa.questions import parse_annotations, parse_questions

TEXTS = ["Is it?", "Wo ist die Tür?", "", "色は?", "Is it?"]


@pytest.fixture(autouse=True)
def small_files_too(monkeypatch):
    monkeypatch.setattr(json_cache, "LEAST_BYTES", 0)


@pytest.fixture
def questions(tmp_path):
    return write_questions(tmp_path / "questions.json", TEXTS)


@pytest.fixture
def annotations(tmp_path):
    path = tmp_path / "annotations.json"
    entries = [
        {
            "question_id": number,
            "image_id": 7,
            "question_type": "is it",
            "answer_type": "yes/no",
            "multiple_choice_answer": text,
            "answers": [{"answer": text}] * 9 + [{"answer": "\ud83d half"}],
        }
        for number, text in enumerate(TEXTS)
    ]
    path.write_text(json.dumps({"annotations": entries}), encoding="utf-8")
    return path


def write_questions(path, texts):
    entries = [{"question_id": n, "image_id": 3, "question": t} for n, t in enumerate(texts)]
    content = {"data_subtype": "val2014", "questions": entries}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def assert_same_questions(found, expected):
    assert (found.texts, found.subtype) == (expected.texts, expected.subtype)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.image_ids, expected.image_ids)


def forbid_parsing(monkeypatch):
    for name in ("parse_questions", "parse_annotations"):
        monkeypatch.setattr(json_cache, name, lambda path: pytest.fail(f"{path} is parsed"))


def test_a_file_is_parsed_once_and_read_the_same_ever_after(questions, annotations, monkeypatch):
    json_cache.read_questions(questions)
    json_cache.read_annotations(annotations)
    forbid_parsing(monkeypatch)
    assert_same_questions(json_cache.read_questions(questions), parse_questions(questions))
    assert json_cache.read_annotations(annotations) == parse_annotations(annotations)


def test_files_without_entries_are_kept_too(tmp_path, monkeypatch):
    empty = write_questions(tmp_path / "questions.json", [])
    (tmp_path / "annotations.json").write_text('{"annotations": []}')
    for _ in range(2):
        assert json_cache.read_questions(empty).texts == []
        assert json_cache.read_annotations(tmp_path / "annotations.json") == []
        forbid_parsing(monkeypatch)


@pytest.mark.parametrize("change", ["size", "time"])
def test_a_file_that_has_changed_is_parsed_again(questions, change):
    json_cache.read_questions(questions)
    status = questions.stat()
    texts = [*TEXTS, "More?"] if change == "size" else ["It is?", *TEXTS[1:]]
    write_questions(questions, texts)
    time = status.st_mtime_ns + (0 if change == "size" else 1)
    os.utime(questions, ns=(time, time))
    assert json_cache.read_questions(questions).texts == texts


@pytest.mark.parametrize("damage", ["cut", "foreign", "empty", "format", "folder"])
def test_a_damaged_cache_is_made_again(questions, damage, monkeypatch):
    json_cache.read_questions(questions)
    cache = json_cache.cache_of(questions)
    content = cache.read_bytes()
    if damage == "format":
        with monkeypatch.context() as older:
            older.setattr(json_cache, "FORMAT", 0)
            json_cache.save_cache(questions, {}, json_cache.stamp(questions))
    else:
        damaged = {"cut": content[: len(content) // 2], "foreign": b"no arrays", "empty": b""}
        cache.unlink()
        if damage == "folder":
            cache.mkdir()
        else:
            cache.write_bytes(damaged[damage])
    assert json_cache.read_questions(questions).texts == TEXTS
    if damage != "folder":
        forbid_parsing(monkeypatch)
        assert json_cache.read_questions(questions).texts == TEXTS


def test_a_cache_with_any_flipped_bit_in_its_directory_is_valid_or_made_again(questions):
    """There are the flags and methods of its parts, of which no checksum is kept."""
    json_cache.read_questions(questions)
    cache = json_cache.cache_of(questions)
    content = cache.read_bytes()
    for place in range(content.index(b"PK\x01\x02"), len(content)):
        for bit in range(8):
            damaged = bytearray(content)
            damaged[place] ^= 1 << bit
            cache.write_bytes(damaged)
            found = json_cache.load_cache(questions, json_cache.questions_from_arrays)
            assert found is None or found.texts == TEXTS


def test_where_no_cache_can_be_written_files_are_parsed(questions, monkeypatch):
    def fail(path):
        raise OSError(f"{path} cannot be written: Read-only file system")

    monkeypatch.setattr(json_cache, "atomic_write", fail)
    for _ in range(2):
        assert json_cache.read_questions(questions).texts == TEXTS
    assert not json_cache.cache_of(questions).exists()


def read_while(change, path, monkeypatch):
    """Read the questions of a file that changes when it has just been parsed."""

    def parse(path):
        parsed = parse_questions(path)
        change(path)
        return parsed

    with monkeypatch.context() as patch:
        patch.setattr(json_cache, "parse_questions", parse)
        return json_cache.read_questions(path)


def test_a_file_that_is_replaced_while_it_is_parsed_is_parsed_again(questions, monkeypatch):
    texts = [*TEXTS, "More?"]
    found = read_while(lambda path: write_questions(path, texts), questions, monkeypatch)
    assert found.texts == TEXTS
    assert json_cache.read_questions(questions).texts == texts


def test_a_file_that_is_deleted_while_it_is_parsed_has_been_read(questions, monkeypatch):
    assert read_while(os.unlink, questions, monkeypatch).texts == TEXTS


def test_the_file_itself_is_not_locked(questions, monkeypatch):
    locked = []
    read_while(lambda path: locked.append(is_locked(path)), questions, monkeypatch)
    assert locked == [False]


def test_a_good_cache_is_read_without_waiting(questions, monkeypatch):
    json_cache.read_questions(questions)
    monkeypatch.setattr(json_cache, "FileLock", lambda path, *_, **__: pytest.fail(str(path)))
    assert json_cache.read_questions(questions).texts == TEXTS


def test_small_files_get_no_cache(questions, monkeypatch):
    monkeypatch.setattr(json_cache, "LEAST_BYTES", questions.stat().st_size + 1)
    assert json_cache.read_questions(questions).texts == TEXTS
    assert os.listdir(questions.parent) == ["questions.json"]


def test_of_several_processes_one_parses_and_the_others_wait(questions):
    program = f"""if True:
        from pathlib import Path
        from data.vqa import json_cache
        json_cache.LEAST_BYTES, parse = 0, json_cache.parse_questions
        json_cache.parse_questions = lambda path: print("parsed") or parse(path)
        print(len(json_cache.read_questions(Path({str(questions)!r}))))
    """
    command = [sys.executable, "-c", program]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    printed = "".join(process.communicate()[0] for process in running)
    assert sorted(printed.split()) == ["5"] * 4 + ["parsed"]
