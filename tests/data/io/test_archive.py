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


@pytest.mark.parametrize(
    "name", ["../evil", "deep/../../evil", "/etc/evil", "..\\evil", "C:\\evil", "C:/evil"]
)
def test_a_member_that_would_leave_the_folder_is_rejected(tmp_path: Path, name: str) -> None:
    archive = make_zip(tmp_path / "a.zip", {"good": b"1", name: b"2"})
    with pytest.raises(ValueError, match="would leave the folder"):
        extract(archive, tmp_path / "out")
    assert files_under(tmp_path) == ["a.zip"]


def test_a_link_is_rejected(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(ValueError, match="is a link"):
        extract(tmp_path / "a.zip", tmp_path / "out")
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


def test_two_members_of_one_name_are_rejected(tmp_path: Path) -> None:
    archive = make_zip(tmp_path / "a.zip", {"in/x": b"1", "other/x": b"2"})
    with pytest.raises(ValueError, match="'x' twice"):
        extract(archive, tmp_path / "out", lambda name: name.split("/")[-1])
    assert files_under(tmp_path) == ["a.zip"]


def test_a_member_compressed_in_another_way_or_lying_outside_is_rejected(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("x", b"1" * 5000)
    with pytest.raises(ValueError, match=r"a\.zip: member 'x' is compressed in a way"):
        extract(tmp_path / "a.zip", tmp_path / "out")
    cut = make_zip(tmp_path / "b.zip", {"x": b"1" * 5000}).read_bytes()[1:]
    (tmp_path / "b.zip").write_bytes(cut)
    with pytest.raises(ValueError, match=r"b\.zip"):
        extract(tmp_path / "b.zip", tmp_path / "out")
    assert files_under(tmp_path) == ["a.zip", "b.zip"]
