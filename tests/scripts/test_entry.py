"""A user's mistake on the command line: one sentence, exit code 2, nothing else."""

import os
import signal
import subprocess
import sys

import pytest

from scripts import train
from tests.small_runs import ROOT


def run(monkeypatch, capsys, *words):
    """The exit code and the error of the command in this process."""
    monkeypatch.setattr(sys, "argv", ["train", *words])
    with pytest.raises(SystemExit) as stop:
        train.main()
    return stop.value.code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["optim.epoch=3"], "there is no setting 'optim.epoch'; did you mean 'optim.epochs'?"),
        (["resum=true"], "there is no setting 'resum'; did you mean 'resume'?"),
        (["optim=paper", "optim.rate.slop=1"], "did you mean 'optim.rate.slope'?"),
        (["attention=discrete", "data=vqa_v2", "data.answer_more_than=3"], "answers_more_than'?"),
    ],
)
def test_a_misspelt_key_is_named_beside_the_nearest_there_is(monkeypatch, capsys, words, named):
    code, error = run(monkeypatch, capsys, *words)
    assert code == 2
    assert named in error
    assert error.startswith("error: ")
    assert error.count("\n") == 1


def test_a_choice_that_is_not_there_is_answered_with_those_that_are(monkeypatch, capsys):
    code, error = run(monkeypatch, capsys, "attention=multimodel")
    assert code == 2
    assert "attention/multimodel" in error
    assert "discrete" in error
    assert "unimodal" in error
    assert error.count("\n") == 1


def test_a_broken_override_ends_in_one_line(monkeypatch, capsys):
    code, error = run(monkeypatch, capsys, "name=[")
    assert code == 2
    assert error.count("\n") == 1


def test_the_command_itself_exits_with_two_and_prints_no_traceback(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "scripts.train", "optim.bach_size=3", f"runs={tmp_path / 'runs'}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "did you mean 'optim.batch_size'?" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["data=custom"], "data=custom needs the folder of your data: data.root=…"),
        (
            ["data=custom", "data.root=/no/where"],
            "no data in /no/where: give your folder with data",
        ),
        (["data=vqa_v2", "data.root=/no/where"], "no data in /no/where: run make data DATA=vqa_v2"),
        (["modules=[no_such_module]"], "the module 'no_such_module' named in modules="),
        (["runtime.device=gpu"], "there is no device 'gpu'"),
    ],
)
def test_a_wrong_value_is_named(monkeypatch, capsys, words, named):
    code, error = run(monkeypatch, capsys, *words)
    assert code == 2
    assert named in error
    assert "Traceback" not in error


def test_an_interruption_while_modules_are_imported_leaves_no_traceback(tmp_path):
    (tmp_path / "torch.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    done = subprocess.run(
        [sys.executable, "-m", "scripts.train"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert done.returncode == -signal.SIGINT  # what a shell calls 130
    assert done.stderr == "interrupted\n"
