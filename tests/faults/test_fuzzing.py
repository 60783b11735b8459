"""Whatever a reader is given, it accepts or rejects it with one sentence; `--cases=n` tries n."""

import os

import pytest

from tests.faults import text_formats
from tests.faults.fuzzers import list_parts
from tests.faults.fuzzing import CASES, draw_case, limited_memory, limited_time
from tests.faults.length import read_length


def pytest_generate_tests(metafunc):
    if "part" in metafunc.fixturenames:
        metafunc.parametrize("part", list_parts(read_length(metafunc.config)), ids=str)


@pytest.fixture
def no_flushes(monkeypatch):
    """Cases are about what is read: to wait for the disk would only cost time."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.mark.filterwarnings("ignore")  # Pillow warns about unusual files
def test_a_reader_accepts_or_rejects_every_case(part, length, tmp_path, request, no_flushes):
    fuzzer = part.fuzzer
    attempt = fuzzer.prepare(tmp_path, request.getfixturevalue)
    done = {"cases": {fuzzer.name: len(part.numbers)}}
    with length.keep(part, done), length.naming(fuzzer.name, part) as name_case, limited_memory():
        for number in part.numbers:
            name_case(number)
            CASES[fuzzer.name] += 1
            with limited_time():
                attempt(draw_case(length.seed, fuzzer.name, number))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n" * 1000,
        b"[" * 100_000,
        b'{"questions":' * 50_000,
        b"[" * 900 + b"]" * 900,
        b"1" * 5000,
        b'{"questions": [{"question_id": 1' + b"0" * 5000 + b"}]}",
        b"\xff\xfe" * 100,
        b"\xef\xbb\xbf{}",
        b"\0" * 5000,
        b"a " * 100_000,
        b"!!python/object/apply:os.system ['echo']",
        b"&a [*a, *a]",
    ],
    ids=lambda content: repr(content[:12]),
)
def test_extreme_texts_are_rejected_or_valid(content, tmp_path):
    for kind in text_formats.FORMATS:
        CASES["extremes to every reader"] += 1
        path = tmp_path / kind.file
        path.write_bytes(content)
        with limited_time():
            kind.read_or_reject(path)
