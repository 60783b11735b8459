"""Unpacking: everything or nothing, and never outside the folder."""

import stat
import zipfile
from pathlib import Path

import pytest

from data.io.archive import extract


def make_zip(path: Path, members: dict[str, bytes]) -> Path:
    """A zip with these members."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return path


def files_under(folder: Path) -> list[str]:
    """All files below a folder."""
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def test_members_arrive_whole_under_their_names(tmp_path: Path) -> None:
    archive = make_zip(tmp_path / "a.zip", {"x.json": b"1" * 5000, "deep/y.json": b"2"})
    paths = extract(archive, tmp_path / "out")
    assert files_under(tmp_path / "out") == ["deep/y.json", "x.json"]
    assert sorted(paths) == [tmp_path / "out/deep/y.json", tmp_path / "out/x.json"]
    assert (tmp_path / "out" / "x.json").read_bytes() == b"1" * 5000


def test_rename_chooses_and_moves_members(tmp_path: Path) -> None:
    archive = make_zip(tmp_path / "a.zip", {"in/1.png": b"a", "in/readme": b"b"})
    extract(archive, tmp_path, lambda name: "maps/1.png" if name.endswith("png") else None)
    assert files_under(tmp_path) == ["a.zip", "maps/1.png"]


def test_a_member_whose_name_is_no_text_is_rejected(tmp_path: Path) -> None:
    archive = make_zip(tmp_path / "a.zip", {"é": b"1"})
    archive.write_bytes(archive.read_bytes().replace("é".encode(), b"\xa9\xa9"))
    with pytest.raises(ValueError, match=r"a\.zip is not a valid zip archive"):
        extract(archive, tmp_path / "out")


OUTSIDE = ["../evil", "deep/../../evil", "/etc/evil", "..\\evil", "C:\\evil", "C:/evil"]
LINK = zipfile.ZipInfo("link")
LINK.external_attr = (stat.S_IFLNK | 0o777) << 16
BZIP2 = zipfile.ZipInfo("x")
BZIP2.compress_type = zipfile.ZIP_BZIP2


@pytest.mark.parametrize(
    ("member", "message"),
    [
        *((zipfile.ZipInfo(name), "would leave the folder") for name in OUTSIDE),
        (LINK, "is a link"),
        (BZIP2, r"a\.zip: member 'x' is compressed in a way"),
        (zipfile.ZipInfo("other/good"), "'good' twice"),
    ],
)
def test_a_member_that_is_not_to_be_trusted_is_rejected(
    tmp_path: Path, member: zipfile.ZipInfo, message: str
) -> None:
    with zipfile.ZipFile(make_zip(tmp_path / "a.zip", {"good": b"1"}), "a") as archive:
        archive.writestr(member, b"1" * 5000)
    with pytest.raises(ValueError, match=message):
        extract(tmp_path / "a.zip", tmp_path / "out", lambda name: name.split("/")[-1])
    assert files_under(tmp_path) == ["a.zip"]


@pytest.mark.parametrize("announced", [10, 100_000])
def test_a_member_that_lies_about_its_size_is_rejected(tmp_path: Path, announced: int) -> None:
    archive = make_zip(tmp_path / "a.zip", {"x": bytes(5000)})
    content = archive.read_bytes()
    lie = content.replace((5000).to_bytes(4, "little"), announced.to_bytes(4, "little"))
    assert lie != content
    archive.write_bytes(lie)
    with pytest.raises(ValueError, match=r"a\.zip.*download it again"):
        extract(archive, tmp_path / "out")
    assert files_under(tmp_path) == ["a.zip"]


@pytest.mark.parametrize("keep", [0, 50, 2000])
def test_a_truncated_archive_is_rejected(tmp_path: Path, keep: int) -> None:
    archive = make_zip(tmp_path / "a.zip", {f"{n}": bytes([n]) * 500 for n in range(60)})
    archive.write_bytes(archive.read_bytes()[:keep])
    with pytest.raises(ValueError, match="not a valid zip"):
        extract(archive, tmp_path / "out")
    assert files_under(tmp_path) == ["a.zip"]


def test_damaged_content_leaves_nothing(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("first", b"fine")
        archive.writestr("second", b"x" * 1000)
    content = bytearray((tmp_path / "a.zip").read_bytes())
    content[content.index(b"xxxx") + 100] ^= 1
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(ValueError, match="not a valid zip"):
        extract(tmp_path / "a.zip", tmp_path / "out")
    assert files_under(tmp_path) == ["a.zip"]


def test_a_member_that_lies_outside_the_archive_is_rejected(tmp_path: Path) -> None:
    archive = make_zip(tmp_path / "a.zip", {"x": b"1" * 5000})
    archive.write_bytes(archive.read_bytes()[1:])
    with pytest.raises(ValueError, match=r"a\.zip"):
        extract(archive, tmp_path / "out")
    assert files_under(tmp_path) == ["a.zip"]
