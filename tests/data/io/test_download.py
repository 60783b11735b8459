"""Downloads against a server on loopback that cuts the connection."""

import random
from pathlib import Path

import pytest

from data.io.disk_space import require_room
from data.io.download import download
from tests.data.io.loopback import Site, serve

BODY = random.Random(0).randbytes(1_000_000)


def leftovers(folder: Path) -> list[str]:
    """Names in a folder."""
    return sorted(path.name for path in folder.iterdir())


def test_whole_file_arrives(tmp_path: Path) -> None:
    with serve(Site({"a.zip": BODY})) as site:
        download(site.url + "a.zip", tmp_path / "a.zip", pause=0)
    assert (tmp_path / "a.zip").read_bytes() == BODY
    assert leftovers(tmp_path) == ["a.zip"]


def test_a_cut_connection_goes_on_where_it_ended(tmp_path: Path) -> None:
    with serve(Site({"a.zip": BODY}, cut_after=400_000, cuts=2)) as site:
        download(site.url + "a.zip", tmp_path / "a.zip", pause=0)
    assert (tmp_path / "a.zip").read_bytes() == BODY
    assert site.asked == [None, "bytes=400000-", "bytes=800000-"]


def test_a_server_without_ranges_starts_over_and_the_file_is_right(tmp_path: Path) -> None:
    with serve(Site({"a.zip": BODY}, ranges=False, cut_after=400_000, cuts=2)) as site:
        download(site.url + "a.zip", tmp_path / "a.zip", pause=0)
    assert (tmp_path / "a.zip").read_bytes() == BODY
    assert leftovers(tmp_path) == ["a.zip"]


def test_a_server_that_always_cuts_gives_an_error_and_a_later_run_goes_on(tmp_path: Path) -> None:
    with serve(Site({"a.zip": BODY}, ranges=False, cut_after=500_000, cuts=99)) as site:
        with pytest.raises(OSError, match=r"a\.zip could not be downloaded.*again"):
            download(site.url + "a.zip", tmp_path / "a.zip", num_retries=2, pause=0)
        assert not (tmp_path / "a.zip").exists()
        assert (tmp_path / "a.zip.part").stat().st_size == 500_000
        site.ranges, site.cuts = True, 0
        download(site.url + "a.zip", tmp_path / "a.zip", pause=0)
        assert site.asked[-1] == "bytes=500000-"
    assert (tmp_path / "a.zip").read_bytes() == BODY


def test_a_file_that_changed_on_the_server_is_not_glued_together(tmp_path: Path) -> None:
    (tmp_path / "a.zip.part").write_bytes(BODY[:300_000])
    (tmp_path / "a.zip.part.json").write_text('{"validator": "\\"one\\""}')
    with serve(Site({"a.zip": BODY[::-1]}, tag='"two"')) as site:
        download(site.url + "a.zip", tmp_path / "a.zip", pause=0)
        assert site.asked == ["bytes=300000-"]
    assert (tmp_path / "a.zip").read_bytes() == BODY[::-1]


def test_a_part_of_unknown_origin_is_not_trusted(tmp_path: Path) -> None:
    (tmp_path / "a.zip.part").write_bytes(BODY[::-1][:300_000])
    with serve(Site({"a.zip": BODY})) as site:
        download(site.url + "a.zip", tmp_path / "a.zip", pause=0)
    assert (tmp_path / "a.zip").read_bytes() == BODY


def test_a_complete_part_of_a_killed_run_is_recognised(tmp_path: Path) -> None:
    with serve(Site({"a.zip": BODY})) as site:
        download(site.url + "a.zip", tmp_path / "a.zip", pause=0)
        (tmp_path / "a.zip").rename(tmp_path / "a.zip.part")
        (tmp_path / "a.zip.part.json").write_text('{"validator": "\\"one\\""}')
        download(site.url + "a.zip", tmp_path / "a.zip", pause=0)
        assert site.asked[-1] == f"bytes={len(BODY)}-"
    assert (tmp_path / "a.zip").read_bytes() == BODY
    assert leftovers(tmp_path) == ["a.zip"]


def test_a_busy_server_is_asked_again_and_a_missing_file_is_not(tmp_path: Path) -> None:
    with serve(Site({"a.zip": BODY}, errors=[503, 500])) as site:
        download(site.url + "a.zip", tmp_path / "a.zip", pause=0)
        assert len(site.asked) == 3
        with pytest.raises(OSError, match=r"b\.zip answered 404"):
            download(site.url + "b.zip", tmp_path / "b.zip", pause=0)
        assert len(site.asked) == 4
    assert leftovers(tmp_path) == ["a.zip"]


def test_no_server_is_an_error_that_names_the_address(tmp_path: Path) -> None:
    with serve(Site({})) as site:
        url = site.url
    with pytest.raises(OSError, match=url):
        download(url + "a.zip", tmp_path / "a.zip", num_retries=1, pause=0)


def test_missing_room_is_an_error_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"unpacking x needs .* TB in .* free"):
        require_room(tmp_path / "new" / "folder", 10**17, "unpacking x")
    assert leftovers(tmp_path) == []
