"""Runs whose last checkpoint is damaged or incompatible are resumed."""

import shutil

import pytest

from scripts import train
from tests.checkpoint_changes import DAMAGES, INCOMPATIBILITIES, truncate
from tests.small_models import listing, read_error, run_here
from tests.small_runs import assert_ends_like

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")


@pytest.fixture
def interrupted(references, runs, tmp_path):
    """A run that has reached step 30; its newest checkpoint is also named last.pt."""
    folder = runs / f"interrupted_{tmp_path.name}"
    folder.mkdir()
    numbered = [f"step_{step:08d}.pt" for step in (28, 29, 30)]
    for name in [*numbered, "config.yaml", ".lock"]:
        shutil.copy(references[1] / name, folder)
    (folder / "last.pt").hardlink_to(folder / "step_00000030.pt")
    shutil.copy(references[1] / "step_00000021.pt", folder / "best.pt")
    return folder


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_resuming_from_a_damaged_checkpoint(words, references, interrupted, damage):
    """Resumes from the one before with a warning, and keeps the damaged one under another name."""
    damage(interrupted / "last.pt")
    damaged = (interrupted / "last.pt").read_bytes()
    words = [*words, f"name={interrupted.name}", "resume=true"]
    code, printed, error = run_here(train.main, *words, quiet=[])
    assert code == 0, error
    warning = printed.splitlines()[0]
    assert warning.startswith(f"WARNING: {interrupted}/step_00000030.pt is not a valid checkpoint")
    assert warning.endswith("; resuming from step_00000029.pt instead")
    assert (interrupted / "damaged_step_00000030.pt").read_bytes() == damaged
    assert_ends_like(interrupted, references[1])


def assert_not_resumed(words, folder, named, reason):
    """One sentence, and no file is changed."""
    before = listing(folder)
    error = read_error(train.main, *words, f"name={folder.name}", "resume=true", quiet=[])
    assert reason in error
    assert named in error
    assert listing(folder) == before


def test_resuming_when_every_checkpoint_is_damaged(words, interrupted):
    for path in interrupted.glob("step_*.pt"):
        reason = truncate(path)
    assert_not_resumed(words, interrupted, f"{interrupted}/step_00000030.pt", reason)


@pytest.mark.parametrize("change", INCOMPATIBILITIES.values(), ids=INCOMPATIBILITIES)
def test_resuming_from_an_incompatible_checkpoint(words, interrupted, change):
    """It is not damaged, so nothing is renamed and no earlier step is used: the user decides."""
    reason = change(interrupted / "step_00000030.pt")
    assert_not_resumed(words, interrupted, "checkpoint", reason)
