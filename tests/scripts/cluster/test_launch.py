"""Several processes end as one command does: one sentence, one exit code, never hanging."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.cluster.launch import parse, torchrun_words
from tests.faults.runs import hold_in_step
from tests.small_runs import ROOT, assert_same, end_state, finish, settings, start

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")

AT_EVERY_STEP = "runtime.checkpoint_every_minutes=0"


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


@pytest.fixture(scope="module")
def reference(words, runs):
    """Two processes that nothing interrupted."""
    code, printed = finish(start([*words, "name=reference"], num_processes=2))
    assert code == 0, printed
    assert "Traceback" not in printed
    assert printed.count("validation accuracy") == 1
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
    assert printed.count("started again: resumes from the last checkpoint") == 1
    assert_same(end_state(runs / name), end_state(reference))
    assert [path.name for path in runs.glob("*restart*")] == [name]  # one folder for all


def test_without_restarts_a_killed_process_ends_all(words, runs):
    """The one that is left does not wait until its time for an answer is over."""
    patient = [*words, "name=killed", "runtime.timeout_minutes=60"]
    process = hold_in_step(patient, runs / "killed.trace", 4, 2)
    kill_one_worker(process, 1)
    (runs / "killed.trace").unlink()
    code, printed = process.end()
    assert code == 1, printed
    assert "error: process 1 was killed by SIGKILL; resume=true continues" in printed


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_request_to_stop_ends_all_with_its_exit_code_and_is_not_a_crash(words, runs, number):
    name = f"stopped_{number.name}"
    patient = [*words, f"name={name}", "runtime.max_restarts=1"]
    process = hold_in_step(patient, runs / f"{name}.trace", 4, 2)
    process.send_signal(number)
    code, printed = process.end()
    assert code == 75, printed
    assert printed.count("stopped on request; resume=true continues from the checkpoint") == 1
    assert "Traceback" not in printed
    assert not (runs / name / "best.pt").exists()  # it did stop before the end


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("optim.epoch=3", "there is no setting 'optim.epoch'; did you mean 'optim.epochs'?"),
        ("data.root=/no/where", "there is no data in /no/where: give your folder with data.root="),
        ("name=reference", "reference exists already: continue it with resume=true"),
        ("runtime.device=gpu", "there is no device 'gpu'"),
        ("optim.rate.peak=1e30", "is not finite (questions: "),
    ],
)
def test_a_mistake_is_one_sentence_from_all_processes_together(
    words, runs, reference, change, sentence
):
    more = ["name=mistaken"]
    if change.startswith("name"):
        more = ["runtime.max_restarts=1"]  # a mistake is not tried again
    code, printed = finish(start([*words, *more, change], 2))
    assert code == 2, printed
    assert sentence in printed
    (line,) = printed.splitlines()
    assert line.startswith("error: ")


def test_a_mistake_in_another_command_is_one_sentence_too(reference):
    code, printed = finish(start([f"checkpoint={reference}", "split=nope"], 2, "scripts.evaluate"))
    assert code == 2
    assert len(printed.splitlines()) == 1, printed


def test_processes_meet_at_addresses_not_at_names():
    nodes = ["--nodes=2", "--node=1", "--endpoint=10.0.0.1:20000", "--address=10.0.0.2"]
    assert "--local-addr=10.0.0.2" in torchrun_words(parse([*nodes, "scripts.train"]), [], 0)
    alone = parse(["--processes=2", "scripts.train"])
    assert "--local-addr=127.0.0.1" in torchrun_words(alone, [], 0)


@pytest.mark.parametrize("number", ["0", "two"])
def test_a_wrong_number_of_processes_is_rejected(number):
    words = [
        sys.executable,
        "-m",
        "scripts.cluster.launch",
        f"--processes={number}",
        "scripts.train",
    ]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch("error: .*\n", done.stderr)
