"""Runs are found by the names that a user gives them."""

import pytest
import torch

from scripts.cli.checkpoints import find_run, load_models
from scripts.evaluate import main
from tests.small_runs import ALONE


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


@pytest.mark.parametrize("number", [None, 2])
def test_a_narrow_model_answers_with_one_thread_unless_another_number_is_set(
    multimodal_run, number
):
    """As it was trained, so that its validation is repeated; beside other programs it is faster."""
    words = f"checkpoint={multimodal_run}", f"runtime.num_threads={number or 'null'}"
    (settings,) = main.compose(words)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        load_models(settings, [settings.checkpoint], ALONE)
        assert torch.get_num_threads() == (number or 1)
    finally:
        torch.set_num_threads(before)
