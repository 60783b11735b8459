import json
import random

import pytest

from data import json_array
from data.json_array import iterate_array


def write(tmp_path, text):
    path = tmp_path / "array.json"
    path.write_text(text, encoding="utf-8")
    return path


VALUES = [
    [],
    [1],
    [12345, -6.5e7, True, None, "a]b,c", 'é\\"', {"x": [1, {"y": "}"}]}, [[], {}]],
    [{"question_id": number, "answer": "word" * (number % 5)} for number in range(300)],
]


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("chunk", [1, 2, 7, 1 << 16])
@pytest.mark.parametrize("indent", [None, 1])
def test_elements_are_those_that_json_reads_however_the_file_is_cut(
    tmp_path, monkeypatch, values, chunk, indent
):
    monkeypatch.setattr(json_array, "CHUNK", chunk)
    path = write(tmp_path, f" \n{json.dumps(values, indent=indent, ensure_ascii=False)}\n\t ")
    assert list(iterate_array(path)) == values


@pytest.mark.parametrize(
    "text",
    ["", "  ", "{}", "3", "[", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1]]", "[1][2]", '["a]',
     '{"a": 1}\n{"a": 2}', "[tru]", "[1], 2"],
)  # fmt: skip
@pytest.mark.parametrize("chunk", [1, 1 << 16])
def test_what_is_not_one_array_is_refused_by_name(tmp_path, monkeypatch, text, chunk):
    monkeypatch.setattr(json_array, "CHUNK", chunk)
    with pytest.raises(ValueError, match=r"array\.json"):
        list(iterate_array(write(tmp_path, text)))


def test_random_damage_is_accepted_only_where_json_accepts_it(tmp_path, monkeypatch):
    monkeypatch.setattr(json_array, "CHUNK", 3)
    generator = random.Random(0)
    whole = json.dumps(VALUES[2])
    for _ in range(120):
        place = generator.randrange(len(whole))
        text = whole[:place] + generator.choice(["", "]", ",", "1", '"', "{"]) + whole[place + 1 :]
        path = write(tmp_path, text)
        try:
            expected = json.loads(text)
        except ValueError:
            with pytest.raises(ValueError, match=r"array\.json"):
                list(iterate_array(path))
        else:
            assert list(iterate_array(path)) == expected


@pytest.mark.parametrize("content", [b'[1, "\xff"]', b"[" * 100_000], ids=["no UTF-8", "nested"])
def test_bytes_that_no_json_has_are_refused_by_name(tmp_path, content):
    path = tmp_path / "array.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"array\.json is not valid JSON"):
        list(iterate_array(path))
