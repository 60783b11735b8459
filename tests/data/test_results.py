import json

import pytest

from data.results import check_ids, load_results


def write(tmp_path, content):
    path = tmp_path / "results.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_results_map_ids_to_answers(tmp_path):
    entries = [{"question_id": 2, "answer": "yes"}, {"question_id": 1, "answer": "", "extra": 1}]
    assert load_results(write(tmp_path, entries)) == {2: "yes", 1: ""}


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
        ([{"question_id": True, "answer": "a"}], "must be a non-negative integer, not True"),
        ([{"question_id": "1", "answer": "a"}], "must be a non-negative integer, not '1'"),
        ([{"question_id": 1.5, "answer": "a"}], "must be a non-negative integer, not 1.5"),
        ([{"question_id": n, "answer": n} for n in (4, 5)], r"2 answers .* \(questions 4, 5\)"),
        ([{"question_id": 4, "answer": None}], r"1 answers are not strings \(questions 4\)"),
        ([{"question_id": n, "answer": "a"} for n in (1, 2, 1)], r"more than once \(1\)"),
    ],
)
def test_what_the_server_would_misread_is_refused_by_name(tmp_path, content, message):
    with pytest.raises(ValueError, match=message) as error:
        load_results(write(tmp_path, content))
    assert "results.json" in str(error.value)


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
