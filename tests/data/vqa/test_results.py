import json

import numpy as np
import pytest

from data.vqa.results import check_ids, check_results, load_results, result_name, write_results


def write(tmp_path, content):
    path = tmp_path / "results.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def check(path):
    """Against two questions and an answer list."""
    check_results(path, np.array([1, 2]), {"a", "b"}, "questions.json")


def test_results_map_ids_to_answers(tmp_path):
    entries = [{"question_id": 2, "answer": "yes"}, {"question_id": 1, "answer": "", "extra": 1}]
    assert load_results(write(tmp_path, entries)) == {2: "yes", 1: ""}


@pytest.mark.parametrize("read", [load_results, check])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"question_id": 1, "answer": "a"}\n{"question_id": 2, "answer": "b"}\n', "JSON Lines"),
        ('{"question_id": 1, "answer": "a"}\n', "holds a JSON dict; expected one JSON array"),
        ("3", "holds a JSON int; expected one JSON array"),
        ("[", "is not valid JSON"),
        ("", "is not valid JSON"),
        ([{"answer": "a"}], "result number 1 has no 'question_id'"),
        ([{"question_id": 1}], "result number 1 has no 'answer'"),
        ([["1", "a"]], "result number 1 has no 'question_id'"),
        ([1, 2], "result number 1 has no 'question_id'"),
        ([{"question_id": True, "answer": "a"}], "must be a non-negative integer, not True"),
        ([{"question_id": "1", "answer": "a"}], "must be a non-negative integer, not '1'"),
        ([{"question_id": 1.5, "answer": "a"}], "must be a non-negative integer, not 1.5"),
        ([{"question_id": n, "answer": n} for n in (4, 5)], r"2 answers .* \(questions 4, 5\)"),
        ([{"question_id": 4, "answer": None}], r"1 answers are not strings \(questions 4\)"),
        ([{"question_id": n, "answer": "a"} for n in (1, 2, 1)], r"more than once \(1\)"),
    ],
)
def test_a_file_that_the_server_would_misread_is_rejected(tmp_path, read, content, message):
    with pytest.raises(ValueError, match=message) as error:
        read(write(tmp_path, content))
    assert "results.json" in str(error.value)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([{"question_id": 1, "answer": "a"}], r"1 of 2 questions are missing \(2\)"),
        ([{"question_id": n, "answer": "a"} for n in (1, 2, 3)], r"not in the question file \(3\)"),
        ([{"question_id": n, "answer": "c"} for n in (1, 2)], "'c' is not in the answer list"),
        ([{"question_id": n, "answer": "a", "x": 1} for n in (1, 2)], "more than a question_id"),
    ],
)
def test_written_results_answer_each_question_once_from_the_list(tmp_path, entries, message):
    with pytest.raises(ValueError, match=message):
        check(write(tmp_path, entries))


@pytest.mark.parametrize(
    ("given", "wanted", "message"),
    [
        ([1], [1, 2, 3], r"2 of 3 questions are missing \(2, 3\)"),
        ([1, 2, 9], [1, 2], r"1 ids are not in the question file \(9\)"),
        ([1, 9], [1, 2], r"1 of 2 questions are missing \(2\) and 1 ids are not .* \(9\)"),
        ([], range(100), r"100 of 100 questions are missing \(0, 1, 2, 3, 4, …\)"),
    ],
)
def test_missing_and_foreign_ids_are_named(given, wanted, message):
    with pytest.raises(ValueError, match=message):
        check_ids(given, wanted, "results.json")


def test_the_same_ids_in_any_order_pass():
    check_ids([3, 1, 2], [1, 2, 3], "results.json")


def test_a_written_file_is_one_array_that_reads_back(tmp_path):
    path = tmp_path / "results.json"
    answers = {3: "yes", 1: 'a "quoted" é\n', 2: ""}
    write_results(path, answers.keys(), answers.values())
    assert json.loads(path.read_text("ascii")) == [
        {"question_id": number, "answer": answer} for number, answer in answers.items()
    ]
    assert load_results(path) == answers
    check_results(path, np.array([1, 2, 3]), set(answers.values()), "questions.json")


def test_no_results_are_an_empty_array(tmp_path):
    write_results(tmp_path / "results.json", [], [])
    assert json.loads((tmp_path / "results.json").read_text()) == []


def test_the_official_names_of_result_files():
    assert result_name("test", "mm") == "vqa_OpenEnded_mscoco_test2015_mm_results.json"
    assert result_name("test-dev", "mm") == "vqa_OpenEnded_mscoco_test-dev2015_mm_results.json"
    assert result_name("val", "a b") == "vqa_OpenEnded_mscoco_val2014_a b_results.json"
