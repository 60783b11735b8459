"""Checkpoints that are damaged or incompatible: the error names the file."""

import shutil

import pytest

from data.text.answer_list import AnswerList
from data.text.vocabulary import Vocabulary
from mcan.checkpoint import FORMAT, load_checkpoint, save_checkpoint
from scripts import evaluate, train
from tests.faults.runs import assert_ends_like
from tests.small_models import listing, run_here

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")


def truncate(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3])
    return "is not a valid checkpoint"


def flip_a_bit(path):
    """Within the weights, where torch.load alone does not notice it."""
    content = bytearray(path.read_bytes())
    weights = load_checkpoint(path)["model"]["classify.weight"]
    content[content.index(weights.numpy().tobytes()) + 401] ^= 1
    path.write_bytes(content)
    return "is not a valid checkpoint"


def change(path, **changes):
    save_checkpoint(path, {**load_checkpoint(path), **changes})


def give_another_architecture(path):
    """The weights of a smaller model, as if files of two runs were mixed up."""
    weights = load_checkpoint(path)["model"]
    change(path, model={name: weight[..., :8] for name, weight in weights.items()})
    return "has another architecture"


def give_another_vocabulary(path):
    words = load_checkpoint(path)["vocabulary"]["words"]
    change(path, vocabulary=Vocabulary([*words[:2], *reversed(words[2:])]).state())
    return "was made with another vocabulary"


def give_other_answers(path):
    words = load_checkpoint(path)["answers"]["words"]
    change(path, answers=AnswerList([*reversed(words)]).state())
    return "was made with another answer list"


def give_a_newer_format(path):
    change(path, format=FORMAT + 1)
    return f"has checkpoint format {FORMAT + 1}, this project reads {FORMAT}"


DAMAGES = [truncate, flip_a_bit]
INCOMPATIBILITIES = [
    give_another_architecture,
    give_another_vocabulary,
    give_other_answers,
    give_a_newer_format,
]


def assert_rejected(ended, named, reason):
    code, _, error = ended
    assert code == 2, error
    assert reason in error
    assert named in error
    assert error.count("\n") == 1, error


@pytest.mark.parametrize("damage", [*DAMAGES, *INCOMPATIBILITIES])
@pytest.mark.parametrize("name", ["best.pt", "last.pt"])
def test_evaluating_an_invalid_checkpoint(references, tmp_path, damage, name):
    path = tmp_path / "run" / name
    path.parent.mkdir()
    shutil.copy(references[1] / name, path)
    reason = damage(path)
    before = listing(tmp_path)
    named = path.parent if name == "best.pt" else path  # a run folder means its best.pt
    assert_rejected(run_here(evaluate.main, f"checkpoint={named}"), str(path), reason)
    assert listing(tmp_path) == before


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


def resume(words, folder):
    return run_here(train.main, *words, f"name={folder.name}", "resume=true", quiet=[])


@pytest.mark.parametrize("damage", DAMAGES)
def test_resuming_from_a_damaged_checkpoint(words, references, interrupted, damage):
    """Resumes from the one before with a warning, and keeps the damaged one under another name."""
    damage(interrupted / "last.pt")
    damaged = (interrupted / "last.pt").read_bytes()
    code, printed, error = resume(words, interrupted)
    assert code == 0, error
    warning = printed.splitlines()[0]
    assert warning.startswith(f"WARNING: {interrupted}/step_00000030.pt is not a valid checkpoint")
    assert warning.endswith("; resuming from step_00000029.pt instead")
    assert (interrupted / "damaged_step_00000030.pt").read_bytes() == damaged
    assert_ends_like(interrupted, references[1])


def test_resuming_when_every_checkpoint_is_damaged(words, interrupted):
    for path in interrupted.glob("step_*.pt"):
        truncate(path)
    before = listing(interrupted)
    named = f"{interrupted}/step_00000030.pt"
    assert_rejected(resume(words, interrupted), named, "is not a valid checkpoint")
    assert listing(interrupted) == before


@pytest.mark.parametrize("change_kind", INCOMPATIBILITIES)
def test_resuming_from_an_incompatible_checkpoint(words, interrupted, change_kind):
    """It is not damaged, so nothing is renamed and no earlier step is used: the user decides."""
    reason = change_kind(interrupted / "step_00000030.pt")
    before = listing(interrupted)
    assert_rejected(resume(words, interrupted), "checkpoint", reason)
    assert listing(interrupted) == before
