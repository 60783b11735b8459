"""Word vectors from a GloVe text file: one pass, keeping only the words asked for."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from tqdm import tqdm

LONGEST_LINE = 1 << 20  # bytes; a line of 300 numbers has about 3,000
NUMERALS = b"0123456789.+-eE "
LARGEST_NUMBER = 3e38  # float32; NaN compares false as well


def read_vectors(
    path: str | Path, words: Sequence[str], show_progress: bool = True
) -> dict[str, np.ndarray]:
    """The vectors (E,) float32 of the given words; keeps no other line of the file in memory."""
    wanted = {word.encode("utf-8"): word for word in words}
    found: dict[str, np.ndarray] = {}
    num_features = 0
    for number, line in read_lines(path, show_progress):
        where = f"{path}, line {number}"
        if number == 1:
            num_features = count_numbers(line, where)
        elif number == 2 and count_numbers(line, where) > num_features:
            # with a damaged first line, every later word would end in its first number
            raise ValueError(
                f"{where} has more numbers than line 1 ({num_features}): one is damaged"
            )
        token, numbers = split_line(line, num_features, where)
        word = wanted.get(token)
        if word is not None and word not in found:
            found[word] = parse_numbers(numbers, where)
    if num_features == 0:
        raise ValueError(f"{path} is empty; expected a GloVe text file")
    return found


def measure_vectors(path: str | Path) -> int:
    """How many numbers the vectors of a file have, by its first line."""
    for _, line in read_lines(path, show_progress=False):
        return count_numbers(line, f"{path}, line 1")
    raise ValueError(f"{path} is empty; expected a GloVe text file")


def read_lines(path: str | Path, show_progress: bool) -> Iterator[tuple[int, bytes]]:
    """Numbered lines without their ends, and a progress bar over the bytes."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path} is not a file; expected an unpacked GloVe text file")
    size = Path(path).stat().st_size
    style = {"desc": "word vectors", "unit": "B", "unit_scale": True, "leave": False}
    with open(path, "rb") as file, tqdm(total=size, disable=not show_progress, **style) as bar:
        number = 0
        while line := read_line(file, path, number + 1):
            number += 1
            bar.update(len(line))
            yield number, line.rstrip(b" \r\n")


def read_line(file: BinaryIO, path: str | Path, number: int) -> bytes:
    """The next line; a file without line ends must not fill the memory."""
    line = file.readline(LONGEST_LINE)
    endless = len(line) == LONGEST_LINE and not line.endswith(b"\n")
    if endless or b"\0" in line:
        raise ValueError(
            f"{path}, line {number} is not a line of text; expected a GloVe text file "
            "(unzip it first)"
        )
    return line


def count_numbers(line: bytes, where: str) -> int:
    """How many numbers the first line ends with, after at least one field for its token."""
    fields = line.split(b" ")
    numbers = sum(1 for _ in itertools.takewhile(is_number, reversed(fields[1:])))
    if numbers == 0:
        raise ValueError(f"{where} must be a word and its numbers, separated by single spaces")
    if numbers == 1 and fields[0].isdigit():
        raise ValueError(f"{where} is a header (count and size) that GloVe files lack; remove it")
    return numbers


def split_line(line: bytes, num_features: int, where: str) -> tuple[bytes, bytes]:
    """The token and the text of its numbers; tokens may contain spaces, numbers never do."""
    spaces = line.count(b" ")
    token, _, numbers = line.partition(b" ")
    if spaces == num_features and not numbers.translate(None, NUMERALS):
        return token, numbers  # nearly all lines: no need to cut 300 numbers apart
    if spaces < num_features:
        raise ValueError(
            f"{where} has {spaces} numbers, expected {num_features}: the file is damaged or cut "
            "short; download it again"
        )
    token = line.rsplit(b" ", num_features)[0]
    numbers = line[len(token) + 1 :]
    parse_numbers(numbers, where)
    return token, numbers


def parse_numbers(numbers: bytes, where: str) -> np.ndarray:
    """The numbers of a line (E,) float32; raises at words, gaps, NaN or infinity among them."""
    fields = numbers.split(b" ")
    for field in fields:
        if not is_number(field):
            shown = field.decode("utf-8", errors="replace")
            raise ValueError(f"{where} has '{shown}' where a finite number should be")
    return np.array([float(field) for field in fields], dtype=np.float32)


def is_number(field: bytes) -> bool:
    """Whether a field is a number that float32 can hold."""
    try:
        return abs(float(field)) < LARGEST_NUMBER
    except ValueError:
        return False
