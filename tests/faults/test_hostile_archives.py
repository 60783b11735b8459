"""Archives and downloads that lie: about their size, their names, or what their members are."""

import os
import stat
import zipfile

import pytest

from data.archive import extract
from data.download import download
from tests.data.loopback import Site, serve
from tests.data.test_archive import files_under, make_zip


@pytest.mark.parametrize(
    ("length", "message"),
    [
        ("900000", "could not be downloaded"),  # more than comes
        ("99999999999999999", "downloading .* needs 100000.0 TB"),
    ],
)
def test_a_download_that_announces_more_than_it_sends_is_refused(tmp_path, length, message):
    with (
        serve(Site({"a.zip": bytes(1000)}, ranges=False, length=length)) as site,
        pytest.raises(OSError, match=rf"a\.zip.*{message}|{message}"),
    ):
        download(site.url + "a.zip", tmp_path / "a.zip", num_retries=1, pause=0)
    assert not (tmp_path / "a.zip").exists()


def test_a_download_that_announces_less_than_the_file_is_refused_when_it_is_unpacked(tmp_path):
    body = make_zip(tmp_path / "whole.zip", {"x": os.urandom(5000)}).read_bytes()
    with serve(Site({"a.zip": body}, length="4000")) as site:
        download(site.url + "a.zip", tmp_path / "a.zip", pause=0)
    with pytest.raises(ValueError, match=r"a\.zip is not a sound zip archive"):
        extract(tmp_path / "a.zip", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_length_that_is_no_number_is_not_believed(tmp_path):
    with serve(Site({"a.zip": b"x" * 1000}, length="\u00b2")) as site:
        download(site.url + "a.zip", tmp_path / "a.zip", pause=0)
    assert (tmp_path / "a.zip").read_bytes() == b"x" * 1000


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO, stat.S_IFDIR])
def test_links_and_devices_in_an_archive_are_refused(tmp_path, kind):
    member = zipfile.ZipInfo("member")
    member.external_attr = (kind | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("first", "sound")
        archive.writestr(member, "/etc/passwd")
        archive.writestr("member/evil", "through the link")
    with pytest.raises(ValueError, match=r"a\.zip: member 'member' is a link or a device"):
        extract(tmp_path / "a.zip", tmp_path / "out")
    assert files_under(tmp_path) == ["a.zip"]


def test_a_bomb_is_refused_before_a_byte_is_written(tmp_path):
    """Members that announce more than the disk has, though the archive is small."""
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


def test_a_member_that_inflates_beyond_what_it_announces_is_cut_off(tmp_path):
    archive = make_zip(tmp_path / "a.zip", {"x": bytes(50_000_000)})
    content = archive.read_bytes().replace(
        (50_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little")
    )
    archive.write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.zip.*download it again"):
        extract(archive, tmp_path / "out")
    assert files_under(tmp_path) == ["a.zip"]
