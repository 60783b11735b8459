"""Checkpoints are complete or rejected, and never run the code that is in them."""

import io
import os
import pickle
import zipfile

import pytest
import torch

from mcan.checkpoint import FORMAT, KIND, link_checkpoint, load_checkpoint, save_checkpoint
from tests.small_runs import assert_same

CONTENT = {"model": {"w": torch.arange(5000.0)}, "lines": [{"epoch": 1, "loss": 0.5}], "step": 3}


@pytest.fixture
def path(tmp_path):
    save_checkpoint(tmp_path / "last.pt", CONTENT)
    return tmp_path / "last.pt"


def test_what_is_saved_is_loaded_and_nothing_else_is_left(path):
    assert_same(load_checkpoint(path), {"kind": KIND, "format": FORMAT, **CONTENT})
    assert [entry.name for entry in path.parent.iterdir()] == ["last.pt"]


def test_a_flipped_bit_is_rejected_or_lies_where_nothing_is(path):
    original, content = load_checkpoint(path), path.read_bytes()
    rejected = []
    positions = range(0, len(content), 97)
    for position in positions:
        path.write_bytes(
            content[:position] + bytes([content[position] ^ 4]) + content[position + 1 :]
        )
        try:
            assert_same(load_checkpoint(path), original)  # padding of the archive
        except ValueError as error:
            rejected.append(str(error))
    assert len(rejected) > 0.9 * len(positions)  # most of the file are weights
    assert all("last.pt is not a valid checkpoint" in message for message in rejected)


def test_a_flipped_weight_is_rejected(path):
    content = bytearray(path.read_bytes())
    place = content.index(torch.arange(5000.0).numpy().tobytes())
    content[place + 4000] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"last\.pt is not a valid checkpoint.*damaged"):
        load_checkpoint(path)


def saved(content):
    """The bytes that torch writes."""
    file = io.BytesIO()
    torch.save(content, file)
    return file.getvalue()


def archive(name):
    """A ZIP archive without weights."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as written:
        written.writestr(name, "no weights here")
    return file.getvalue()


WHOLE = saved({"kind": KIND, "format": FORMAT, **CONTENT})
UNREADABLE = [
    b"", b"hello", b"\x89PNG\r\n\x1a\n" + bytes(200), b"PK\x03\x04", archive("a.txt"),
    *(WHOLE[: int(share * len(WHOLE))] for share in (0.1, 0.5, 0.9, 0.999)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *((content, "is not a valid checkpoint") for content in UNREADABLE),
        (saved([1, 2]), "is not a checkpoint"),
        (saved({"state_dict": {"proj.weight": torch.zeros(2)}}), "is not a checkpoint.*import-mca"),
        (
            saved({"kind": KIND, "format": FORMAT + 1}),
            f"has checkpoint format {FORMAT + 1}, this project reads {FORMAT}",
        ),
    ],
)
def test_a_file_that_is_no_whole_checkpoint_of_this_format_is_rejected(tmp_path, content, message):
    (tmp_path / "x.pt").write_bytes(content)
    with pytest.raises(ValueError, match=rf"x\.pt {message}"):
        load_checkpoint(tmp_path / "x.pt")


def test_no_file_is_said_plainly(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no checkpoint .*gone\.pt"):
        load_checkpoint(tmp_path / "gone.pt")


class Payload:
    """Touches a file when it is unpickled."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return os.mkdir, (str(self.target),)


def test_a_payload_never_runs(tmp_path):
    target = tmp_path / "owned"
    torch.save({"kind": KIND, "format": FORMAT, "model": Payload(target)}, tmp_path / "evil.pt")
    (tmp_path / "evil.pkl").write_bytes(pickle.dumps({"kind": KIND, "model": Payload(target)}))
    for name in ("evil.pt", "evil.pkl"):
        with pytest.raises(ValueError, match=rf"{name} is not a valid checkpoint"):
            load_checkpoint(tmp_path / name)
        assert not target.exists()
    torch.load(tmp_path / "evil.pt", weights_only=False)  # the payload works
    assert target.exists()


def test_a_write_that_fails_leaves_the_old_file_and_no_other(path, monkeypatch):
    before = path.read_bytes()

    def fill_the_disk(content, file):
        file.write(b"half a checkpoint")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", fill_the_disk)
    with pytest.raises(OSError, match="No space left"):
        save_checkpoint(path, {"model": {}})
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == ["last.pt"]


def test_a_second_name_replaces_what_had_it(path):
    best = path.with_name("best.pt")
    best.write_bytes(b"older")
    link_checkpoint(path, best)
    assert best.read_bytes() == path.read_bytes()
    save_checkpoint(path, {"model": {}})  # a new file: the other name keeps the old one
    assert_same(load_checkpoint(best)["model"], CONTENT["model"])
