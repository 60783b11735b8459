"""The real wandb, offline: what it is given, resuming, and that its failure ends no run."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from mcan.training.trackers import register_tracker
from scripts import train
from tests.mcan.training.wandb_files import read_runs
from tests.small_models import read_error
from tests.small_runs import assert_ends_like, end_state, finish, settings, start, train_here

pytest.importorskip("wandb")
pytestmark = pytest.mark.filterwarnings("ignore:a constant image")

SHORT = "runtime.limit_batches=21"  # one point of a curve over steps lies within, one at its start


@pytest.fixture(autouse=True)
def no_settings_of_the_users(monkeypatch):
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return tmp_path_factory.mktemp("wandb")


@pytest.fixture(scope="module")
def words(small_dataset, runs):
    # a rate that does not depend on the number of epochs, of which a resumed run has more
    small = [
        "optim.batch_size=4",
        "optim.rate={name:constant,value:1e-3}",
        "tracker=[wandb]",
        SHORT,
    ]
    return [*settings(small_dataset, runs), *small]


@pytest.fixture(scope="module")
def reference(words, runs):
    """The same run without wandb."""
    train_here([*words, "name=plain", "tracker=[]"])
    return runs / "plain"


def test_a_resumed_run_keeps_its_id_and_every_value_is_in_the_files(words, runs, reference):
    words = [*words, "name=kept"]
    code, printed = finish(start([*words, "optim.epochs=1"]))
    assert code == 0, printed
    assert "wandb:" not in printed
    assert "WARNING" not in printed
    train_here([*words, "resume=true"])
    folder = runs / "kept"
    assert_ends_like(folder, reference)
    (first_id, first), (second_id, second) = read_runs(folder)
    assert first_id == second_id == (folder / "wandb_id.txt").read_text()
    lines = end_state(folder)["metrics"]
    for line, steps in zip(lines, (first, second), strict=True):
        shown = steps[line["step"] - 1]
        assert json.loads(shown["epoch/accuracy"]) == line["accuracy"]
        assert json.loads(shown["epoch/loss"]) == pytest.approx(line["loss"])
    assert sorted(first) == [0, 20]
    assert sorted(second) == [40, 41]
    names = {"train/loss", "train/learning_rate", "train/gradient_norm"}
    assert all(names <= first[step].keys() for step in (0, 20))


def test_a_process_of_wandb_that_dies_is_one_warning_and_the_run_goes_on(
    words, runs, reference, capfd
):
    @register_tracker("killer")
    class Killer:
        """Ends wandb's process before the second epoch."""

        def __init__(self, run):
            self.killed = []

        def start_epoch(self, epoch, first_step):
            if epoch == 2:
                for task in Path("/proc/self/task").iterdir():
                    for child in map(int, (task / "children").read_text().split()):
                        if Path(f"/proc/{child}/comm").read_text() == "wandb-core\n":
                            os.kill(child, signal.SIGKILL)
                            self.killed.append(child)
                assert self.killed

        def on_step(self, result, rate): ...
        def end_epoch(self, metrics): ...

    train_here([*words, "name=killed", "tracker=[killer,wandb]"])
    assert capfd.readouterr().err.count("WARNING: wandb failed (") == 1
    assert_ends_like(runs / "killed", reference)


def test_a_wandb_that_cannot_start_is_one_warning(words, runs, reference, capfd, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "sometimes")
    train_here([*words, "name=unset"])
    printed = capfd.readouterr().err
    assert printed.count("WARNING: wandb failed (") == 1
    assert "mode" in printed
    assert_ends_like(runs / "unset", reference)


def test_without_the_package_the_tracker_is_rejected_before_anything_is_made(
    words, runs, monkeypatch
):
    monkeypatch.setitem(sys.modules, "wandb", None)
    error = read_error(train.main, *words, "name=without", quiet=[])
    assert "tracker=[wandb] needs the package wandb: .venv/bin/pip install -e '.[wandb]'" in error
    assert not (runs / "without").exists()
