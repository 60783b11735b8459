"""Whether a file can be written is known before the work that it is to hold."""

import os
import tempfile
from pathlib import Path

import pytest

from data.io.atomic_files import check_output_file, check_parents, write_json

NOBODY = 65534


@pytest.fixture
def closed():
    """A folder that may only be read, with one in it that is open; root, who may all, is nobody."""
    with tempfile.TemporaryDirectory() as name:
        os.mkdir(f"{name}/mine")
        os.chmod(f"{name}/mine", 0o777)
        os.chmod(name, 0o555)
        is_root = os.geteuid() == 0
        if is_root:
            os.seteuid(NOBODY)
        yield Path(name)
        if is_root:
            os.seteuid(0)
        os.chmod(name, 0o755)  # so that it can be removed


@pytest.mark.parametrize("name", ["a.json", "new/folder/a.json"])
def test_a_folder_that_may_not_be_written_to_is_reported_before_anything_is_written(closed, name):
    for check in (check_output_file, check_parents):
        with pytest.raises(PermissionError, match=rf"{name} cannot be written: Permission denied"):
            check(closed / name)


def test_the_parent_of_an_output_folder_that_is_there_need_not_be_writable(closed):
    check_parents(closed / "mine")
    check_output_file(closed / "mine" / "a.json")


def test_a_name_that_passes_the_check_can_be_written(tmp_path):
    suffix = len(f"..{os.getpid()}.partial")
    longest = tmp_path / ("é" * ((os.pathconf(tmp_path, "PC_NAME_MAX") - suffix) // 2))
    check_output_file(longest)
    write_json(longest, {})
    with pytest.raises(OSError, match="its name is too long; give it a shorter one"):
        check_output_file(tmp_path / f"{longest.name}éé")
