"""Archives and downloads with false sizes, dangerous names or links as members."""

import os
import stat
import zipfile

import pytest

from data.io.archive import extract
from data.io.download import download
from tests.data.io.loopback import Site, serve
from tests.data.io.test_archive import files_under, make_zip


@pytest.mark.parametrize(
    ("length", "message"),
    [
        ("900000", "could not be downloaded"),  # more than is sent
        ("99999999999999999", "downloading .* needs 100000.0 TB"),
    ],
)
def test_a_download_shorter_than_its_declared_length_is_rejected(tmp_path, length, message):
    with (
        serve(Site({"a.zip": bytes(1000)}, ranges=False, length=length)) as site,
        pytest.raises(OSError, match=rf"a\.zip.*{message}|{message}"),
    ):
        download(site.url + "a.zip", tmp_path / "a.zip", num_retries=1, pause=0)
    assert not (tmp_path / "a.zip").exists()


def test_a_download_longer_than_its_declared_length_is_rejected_when_unpacked(tmp_path):
    body = make_zip(tmp_path / "whole.zip", {"x": os.urandom(5000)}).read_bytes()
    with serve(Site({"a.zip": body}, length="4000")) as site:
        download(site.url + "a.zip", tmp_path / "a.zip", pause=0)
    with pytest.raises(ValueError, match=r"a\.zip is not a valid zip archive"):
        extract(tmp_path / "a.zip", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_invalid_content_length_is_ignored(tmp_path):
    with serve(Site({"a.zip": b"x" * 1000}, length="\u00b2")) as site:
        download(site.url + "a.zip", tmp_path / "a.zip", pause=0)
    assert (tmp_path / "a.zip").read_bytes() == b"x" * 1000


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO, stat.S_IFDIR])
def test_links_and_devices_in_an_archive_are_rejected(tmp_path, kind):
    member = zipfile.ZipInfo("member")
    member.external_attr = (kind | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("first", "sound")
        archive.writestr(member, "/etc/passwd")
        archive.writestr("member/evil", "through the link")
    with pytest.raises(ValueError, match=r"a\.zip: member 'member' is a link or a device"):
        extract(tmp_path / "a.zip", tmp_path / "out")
    assert files_under(tmp_path) == ["a.zip"]


def test_a_zip_bomb_is_rejected_before_anything_is_written(tmp_path):
    """Members that declare more bytes than the disk has, in a small archive."""
    archive = make_zip(tmp_path / "a.zip", {"x": bytes(5000), "y": bytes(5000)})
    size = (5000).to_bytes(4, "little")
    content = archive.read_bytes().replace(size, (2**32 - 2).to_bytes(4, "little"))
    archive.write_bytes(content)
    needed = 2 * (2**32 - 2)
    limit = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    message = "unpacking .* needs 8.6 GB" if needed > limit else "download it again"
    with pytest.raises((OSError, ValueError), match=message):
        extract(archive, tmp_path / "out")
    assert files_under(tmp_path) == ["a.zip"]
