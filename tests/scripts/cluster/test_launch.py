"""Several processes end as one command does: one sentence, one exit code, never hanging."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.cli.command import CRASHED, fail
from scripts.cluster import launch
from scripts.cluster.exit_status import FILE, read_exit_status
from scripts.cluster.launch import parse, torchrun_words
from scripts.train import train
from tests.faults.runs import hold_in_step
from tests.mcan.runtime.together import run_together
from tests.scripts.mistakes import assert_one_sentence
from tests.small_runs import (
    AT_EVERY_STEP,
    ROOT,
    assert_same,
    compose,
    end_state,
    finish,
    settings,
    start,
)

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")


def kill_one_worker(process, rank):
    """kill -9 of one process that the launcher started."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    environments = {
        child: dict(
            entry.split("=", 1)
            for entry in Path(f"/proc/{child}/environ").read_text().split("\0")
            if "=" in entry
        )
        for child in children
    }
    (victim,) = [c for c, env in environments.items() if env.get("RANK") == str(rank)]
    os.kill(int(victim), signal.SIGKILL)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def words(small_dataset, runs):
    return settings(small_dataset, runs)


def train_part(world, overrides):
    """What each of several processes does."""
    train(compose(overrides), world)


@pytest.fixture(scope="module")
def reference(words, runs, tmp_path_factory):
    """Two processes that nothing interrupted, without a launcher."""
    job = 2, train_part, ([*words, "name=reference"],)
    run_together([job], tmp_path_factory.mktemp("reference"))
    return runs / "reference"


def test_a_killed_process_brings_all_back_from_the_last_checkpoint(
    words, runs, reference, tmp_path
):
    name = "restarted"
    again = [*words, f"name={name}", AT_EVERY_STEP, "runtime.max_restarts=1"]
    late = 25  # so few steps are left that the second start reaches no such number
    process = hold_in_step(again, tmp_path / "trace", late, 2)
    kill_one_worker(process, 0)  # the one that writes, and whose address the others know
    code, printed = process.end()
    assert code == 0, printed
    assert "Traceback" not in printed
    assert printed.count("started again: resumes from the last checkpoint") == 1
    assert printed.count("validation accuracy") == 1
    assert_same(end_state(runs / name), end_state(reference))
    assert [path.name for path in runs.glob("*restart*")] == [name]  # one folder for all


def test_a_request_to_stop_ends_all_with_its_exit_code_and_is_not_a_crash(words, runs):
    """SIGINT to the launcher alone; tests/faults/test_signals.py has SIGTERM and a terminal."""
    process = hold_in_step(
        [*words, "name=stopped", "runtime.max_restarts=1"], runs / "stopped.trace", 4, 2
    )
    process.send_signal(signal.SIGINT)
    code, printed = process.end()
    assert code == 75, printed
    assert printed.count("stopped on request; resume=true continues from the checkpoint") == 1
    assert "Traceback" not in printed
    assert not (runs / "stopped" / "best.pt").exists()  # it did stop before the end


def test_a_mistake_that_the_first_process_finds_is_one_sentence_and_not_tried_again(
    small_dataset, runs, reference, tmp_path
):
    """With a head in a folder of one's own, which all processes find: nothing else is wrong."""
    (tmp_path / "own" / "attention").mkdir(parents=True)
    (tmp_path / "own" / "attention" / "mine.yaml").write_text("name: sharp\ntemperature: 2.0\n")
    words = settings(small_dataset, runs, "attention=mine", "name=reference")
    own = ["modules=[examples.own_parts]", f"--config-dir={tmp_path / 'own'}"]
    process = start([*words[:3], *own, *words[3:], "runtime.max_restarts=1"], 2)
    assert_one_line(process, "reference exists already: continue it with resume")


def test_a_process_that_is_started_again_after_a_mistake_ends_before_it_imports_torch(tmp_path):
    (tmp_path / "torch.py").write_text("raise SystemExit('torch was imported')\n")
    (tmp_path / "status").write_text(json.dumps([2, "error: a mistake"]))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), FILE: str(tmp_path / "status")}

    def start_again(number):
        return subprocess.run(
            [sys.executable, "-m", "scripts.train"],
            cwd=ROOT,
            env={**environment, "TORCHELASTIC_RESTART_COUNT": number},
            capture_output=True,
            text=True,
        )

    again, first = map(start_again, "10")
    assert (again.returncode, again.stdout, again.stderr) == (2, "", "")
    assert (first.returncode, first.stderr) == (1, "torch was imported\n")


@pytest.fixture
def _asked_to_stop(monkeypatch, tmp_path):
    """A launcher that was asked to stop before it had started a process."""
    monkeypatch.setenv(FILE, str(tmp_path / "status"))
    monkeypatch.setattr(launch, "find_children", list)
    with pytest.raises(SystemExit, match="75"):
        launch.signal_children(signal.SIGTERM)


@pytest.mark.usefixtures("_asked_to_stop")
def test_a_process_that_leaves_no_status_after_a_request_to_stop_was_stopped():
    assert read_exit_status() == (75, "")


@pytest.mark.usefixtures("_asked_to_stop")
def test_a_failure_after_a_request_to_stop_keeps_its_exit_code_and_its_sentence(capsys):
    with pytest.raises(SystemExit, match="1"):
        fail(OSError(28, "No space left on device", "last.pt"), CRASHED)
    assert read_exit_status() == (1, "error: last.pt: No space left on device")
    assert capsys.readouterr().err == ""  # the launcher prints it


def test_a_mistake_that_every_process_finds_is_one_sentence_in_another_command_too(reference):
    mistake = [f"checkpoint={reference}", "runtime.device=gpu"]
    assert_one_line(start(mistake, 2, "scripts.evaluate"), "there is no device 'gpu'")


def assert_one_line(process, sentence):
    """All processes together end with exit code 2 and print one sentence."""
    code, printed = finish(process)
    assert code == 2, printed
    (line,) = printed.splitlines()
    assert line.startswith("error: ")
    assert sentence in line


def test_a_wrong_setting_is_one_sentence_before_any_process_starts():
    sentence = "there is no setting 'optim.epoch'; did you mean 'optim.epochs'?"
    mistaken = ["--processes=2", "scripts.train", "optim.epoch=3"]
    assert_one_sentence(launch.main, mistaken, sentence)


def test_processes_meet_at_addresses_not_at_names():
    nodes = ["--nodes=2", "--node=1", "--endpoint=10.0.0.1:20000", "--address=10.0.0.2"]
    assert "--local-addr=10.0.0.2" in torchrun_words(parse([*nodes, "scripts.train"]), [], 0)
    alone = parse(["--processes=2", "scripts.train"])
    assert "--local-addr=127.0.0.1" in torchrun_words(alone, [], 0)


@pytest.mark.parametrize("number", ["0", "two"])
def test_a_wrong_number_of_processes_is_rejected(number):
    assert_one_sentence(launch.main, [f"--processes={number}", "scripts.train"], number)
