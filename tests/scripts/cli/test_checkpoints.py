"""Runs are found by the names that a user gives them."""

import pytest

from scripts.cli.checkpoints import find_run


def test_a_run_is_found_by_a_part_of_its_name_when_there_is_one(tmp_path):
    for name in ("shapes-discrete-seed1", "shapes-multimodal-seed1", "shapes-multimodal-seed2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "best.pt").touch()
    assert find_run("discrete", tmp_path) == tmp_path / "shapes-discrete-seed1"
    assert find_run("shapes-multimodal-seed2", tmp_path).name == "shapes-multimodal-seed2"
    path = tmp_path / "shapes-discrete-seed1" / "best.pt"
    assert find_run(str(path), tmp_path) == path
    with pytest.raises(ValueError, match="may be any of shapes-multimodal-seed1, shapes-multi"):
        find_run("multimodal", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"runs in .*: shapes-discrete-seed1, shapes"):
        find_run("crete", tmp_path)
