import os

import pytest

from data.io.journal import Journal

IDENTITY = {"source": "s"}


@pytest.fixture
def journal(tmp_path):
    opened = Journal(tmp_path / "a.journal")
    opened.start(IDENTITY)
    yield opened
    opened.close(remove=False)


def reopen(journal):
    """The journal as another process finds it after a crash."""
    journal.close(remove=False)
    journal.__init__(journal.path)
    return journal.read()


@pytest.mark.parametrize("tail", [b"58", b"58 7", b"58 ", b"58 7\n59", b"x y\n5 6\n", b"\xff"])
def test_what_follows_the_last_intact_line_never_joins_the_next_entry(journal, tail):
    journal.add([(3, 30), (4, 40)])
    with open(journal.path, "ab") as file:
        file.write(tail)
    _, done = reopen(journal)
    journal.add([(60, 61)])
    kept = {58: 7} if tail.startswith(b"58 7\n") else {}
    assert done == {3: 30, 4: 40, **kept}
    assert reopen(journal) == (IDENTITY, {**done, 60: 61})


def test_a_write_that_the_system_cuts_short_is_completed(journal, monkeypatch):
    write = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, content, at: write(fd, content[:3], at))
    journal.add([(123456, 654321), (7, 8)])
    assert reopen(journal) == (IDENTITY, {123456: 654321, 7: 8})


def test_an_entry_after_a_write_that_failed_halfway_is_not_mixed_with_it(journal, monkeypatch):
    write = os.pwrite

    def fill_disk(fd, content, at):
        write(fd, content[:9], at)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", fill_disk)
        with pytest.raises(OSError, match="No space"):
            journal.add([(12345, 67890)])
    journal.add([(1, 1)])
    assert reopen(journal) == (IDENTITY, {1: 1})
