"""Files with bytes cut off, flipped, inserted or removed: rejected by name, or still valid."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.faults import binary_formats, text_formats

NUM_CASES = 400  # per format


@pytest.mark.filterwarnings("ignore")  # Pillow warns about unusual files
@pytest.mark.parametrize(
    "kind", [*text_formats.FORMATS, *binary_formats.FORMATS], ids=lambda kind: kind.name
)
def test_a_damaged_file_is_rejected_or_still_valid(kind, tmp_path_factory):
    path = tmp_path_factory.mktemp("damaged") / kind.file
    kind.make(path)
    if kind.name != "published MCAN":  # it lacks most weights
        kind.check(kind.read(path))
    kind.fuzz(path, NUM_CASES)


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A path for the file of every text format, each in its own folder."""
    return [(kind, tmp_path_factory.mktemp("any") / kind.file) for kind in text_formats.FORMATS]


def read_everywhere(places, content, what):
    """Have every reader read the same bytes."""
    for kind, path in places:
        path.write_bytes(content)
        kind.read_or_reject(path, what)


KEYS = ["questions", "annotations", "question_id", "answers", "answer", "words", "format", "optim"]
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)


@settings(max_examples=100)
@given(
    st.recursive(
        SCALARS,
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
        ),
        max_leaves=12,
    )
)
def test_any_json_is_rejected_or_valid(places, value):
    read_everywhere(places, json.dumps(value).encode(), "any JSON to every reader")


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
def test_extreme_texts_are_rejected_or_valid(places, content):
    read_everywhere(places, content, "extremes to every reader")
