"""Downloads against a server on loopback that cuts the connection."""

import json
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


def fetch(site: Site, folder: Path, **options: int) -> None:
    download(site.url + "a.zip", folder / "a.zip", pause=0, **options)


@pytest.mark.parametrize(
    ("site", "asked"),
    [
        (Site({}), [None]),
        (Site({}, cut_after=400_000, cuts=2), [None, "bytes=400000-", "bytes=800000-"]),
        # without ranges each answer starts over
        (
            Site({}, ranges=False, cut_after=400_000, cuts=2),
            [None, "bytes=400000-", "bytes=400000-"],
        ),
        (Site({}, errors=[503, 500]), [None, None, None]),
    ],
    ids=["whole", "cut", "without ranges", "busy"],
)
def test_the_file_arrives_whole_and_goes_on_where_the_connection_ended(
    tmp_path: Path, site: Site, asked: list[str | None]
) -> None:
    site.files["a.zip"] = BODY
    with serve(site):
        fetch(site, tmp_path)
    assert (tmp_path / "a.zip").read_bytes() == BODY
    assert leftovers(tmp_path) == ["a.zip"]
    assert site.asked == asked


def test_a_server_that_always_cuts_gives_an_error_and_a_later_run_goes_on(tmp_path: Path) -> None:
    with serve(Site({"a.zip": BODY}, ranges=False, cut_after=500_000, cuts=99)) as site:
        with pytest.raises(OSError, match=r"a\.zip could not be downloaded.*again"):
            fetch(site, tmp_path, num_retries=2)
        assert not (tmp_path / "a.zip").exists()
        assert (tmp_path / "a.zip.part").stat().st_size == 500_000
        site.ranges, site.cuts = True, 0
        fetch(site, tmp_path)
        assert site.asked[-1] == "bytes=500000-"
    assert (tmp_path / "a.zip").read_bytes() == BODY


@pytest.mark.parametrize(("validator", "asked"), [('"one"', "bytes=300000-"), (None, None)])
def test_a_part_of_another_file_or_of_unknown_origin_is_not_continued(
    tmp_path: Path, validator: str | None, asked: str | None
) -> None:
    (tmp_path / "a.zip.part").write_bytes(BODY[::-1][:300_000])
    if validator:
        (tmp_path / "a.zip.part.json").write_text(json.dumps({"validator": validator}))
    with serve(Site({"a.zip": BODY}, tag='"two"')) as site:
        fetch(site, tmp_path)
    assert site.asked == [asked]
    assert (tmp_path / "a.zip").read_bytes() == BODY


def test_a_complete_part_of_a_killed_run_is_recognised(tmp_path: Path) -> None:
    with serve(Site({"a.zip": BODY})) as site:
        fetch(site, tmp_path)
        (tmp_path / "a.zip").rename(tmp_path / "a.zip.part")
        (tmp_path / "a.zip.part.json").write_text('{"validator": "\\"one\\""}')
        fetch(site, tmp_path)
        assert site.asked[-1] == f"bytes={len(BODY)}-"
    assert (tmp_path / "a.zip").read_bytes() == BODY
    assert leftovers(tmp_path) == ["a.zip"]


def test_a_missing_file_is_not_asked_for_again(tmp_path: Path) -> None:
    with serve(Site({})) as site, pytest.raises(OSError, match=r"a\.zip answered 404"):
        fetch(site, tmp_path)
    assert site.asked == [None]
    assert leftovers(tmp_path) == []


def test_no_server_is_an_error_that_names_the_address(tmp_path: Path) -> None:
    with serve(Site({})) as site:
        pass
    with pytest.raises(OSError, match=site.url):
        fetch(site, tmp_path, num_retries=1)


def test_missing_room_is_an_error_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"unpacking x needs .* TB in .* free"):
        require_room(tmp_path / "new" / "folder", 10**17, "unpacking x")
    assert leftovers(tmp_path) == []
