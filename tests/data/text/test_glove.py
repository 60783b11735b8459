import tracemalloc

import numpy as np
import pytest

from data.text.glove import read_vectors
from tests.data.vqa.official_files import real_folder


def write(tmp_path, text):
    path = tmp_path / "glove.txt"
    path.write_bytes(text.encode("utf-8"))
    return path


def test_vectors_of_the_words_asked_for(tmp_path):
    path = write(tmp_path, "the 1 2 -3.5\ndog 1e-3 .5 0\ncat 7 8 9\n")
    found = read_vectors(path, ["dog", "the", "bird"])
    assert found.keys() == {"dog", "the"}
    assert found["dog"].dtype == np.float32
    np.testing.assert_array_equal(found["dog"], np.array([1e-3, 0.5, 0], dtype=np.float32))
    np.testing.assert_array_equal(found["the"], [1, 2, -3.5])


@pytest.mark.parametrize(
    "text",
    [
        "dog 1 2\nat name@domain.com 5 6\n. . . 7 8\nat 3 4\n",
        "at name@domain.com 5 6\ndog 1 2\nat 3 4\n",  # the first line decides the dimension
        "dog 1 2\r\nat name 5 6\r\nat 3 4\r\n",
        "dog 1 2 \nat name 5 6 \nat 3 4 \n",  # as fastText writes them
        "dog 1 2\nat 3 4",
        "5 6 7\ndog 1 2\nat 3 4\n",
        "a\xa0b 5 6\nc\x85d 5 6\ndog 1 2\nat 3 4\n",  # what str.split would cut
        "dog 1 2\nat 3 4\nat 9 9\n",  # the first of two stays
    ],
)
def test_tokens_may_hold_spaces_and_lines_may_end_in_any_way(tmp_path, text):
    found = read_vectors(write(tmp_path, text), ["dog", "at"])
    assert {word: vector.tolist() for word, vector in found.items()} == {
        "dog": [1, 2],
        "at": [3, 4],
    }


def test_a_number_can_be_a_word(tmp_path):
    assert read_vectors(write(tmp_path, "2 1 2 3\n"), ["2"])["2"].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dog 1 2 3\ncat 1 2", "line 2 has 2 numbers, expected 3"),
        ("dog 1 2 3\ncat 1 2 \n", "line 2 has 2 numbers, expected 3"),
        ("dog 1 2 3\ncat 1 2 3\ncat", "line 3 has 0 numbers, expected 3"),
        ("dog 1 2\ncat 1 2 3\n", r"line 2 has more numbers than line 1 \(2\)"),
        ("dog 1 2 3\ncat 1 2 3\n\n", "line 3 has 0 numbers, expected 3"),
        ("dog 1 2 3\ncat 1 x 3\n", "line 2 has 'x' where a finite number should be"),
        ("dog 1 2 3\nbird 1 x 3\n", "line 2 has 'x' where a finite number should be"),
        ("dog 1 2 3\ncat 1  3\n", "line 2 has 2 numbers|line 2 has '' where a finite number"),
        ("dog 1 2 3\ncat 1 nan 3\n", "line 2 has 'nan' where a finite number should be"),
        ("dog 1 2 3\ncat 1 inf 3\n", "line 2 has 'inf' where a finite number should be"),
        ("dog 1 2 3\ncat 1 1e39 3\n", "line 2 has '1e39' where a finite number should be"),
        ("dog 1 2 3\ncat 1-2 3 4\n", "line 2 has '1-2' where a finite number should be"),
        ("400000 300\ndog 1 2\n", "line 1 is a header"),
        ("only words here\n", "line 1 must be a word and its numbers"),
        ("", "is empty"),
        ("PK\x03\x04\0\0\0", "line 1 is not a line of text; .*unzip it first"),
        ("x" * (1 << 21), "line 1 is not a line of text"),
    ],
)
def test_a_damaged_file_is_named_with_its_line(tmp_path, text, message):
    with pytest.raises(ValueError, match=message) as error:
        read_vectors(write(tmp_path, text), ["dog", "cat"])
    assert "glove.txt" in str(error.value)


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.txt is not a file"):
        read_vectors(tmp_path / "none.txt", ["dog"])
    with pytest.raises(FileNotFoundError, match="is not a file"):
        read_vectors(tmp_path, ["dog"])


def test_memory_does_not_grow_with_the_file(tmp_path):
    numbers = b" ".join(b"%.5f" % number for number in np.linspace(-1, 1, 300))
    path = tmp_path / "glove.txt"
    with open(path, "wb") as file:
        for row in range(20_000):
            file.write(b"word%d " % row + numbers + b"\n")
    assert path.stat().st_size > 50e6
    words = [f"word{row}" for row in range(0, 20_000, 100)]
    tracemalloc.start()
    found = read_vectors(path, words, show_progress=False)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == len(words)
    assert peak < 2e6  # 200 rows of 1.2 kB, a line and its 300 pieces


@pytest.mark.real
def test_real_vectors_are_read_whole():
    path = real_folder() / "glove.6B.100d.txt"
    lines = path.read_text(encoding="utf-8").splitlines()
    found = read_vectors(path, [line.split(" ")[0] for line in lines])
    assert len(found) == len(lines) == 4414
    last = lines[-1].split(" ")
    np.testing.assert_allclose(found[last[0]], np.array(last[1:], dtype=float), rtol=1e-6)
