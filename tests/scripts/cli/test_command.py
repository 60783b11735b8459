"""How a command starts and ends: its words, a user-defined one, an interruption."""

import os
import signal
import subprocess
import sys
import warnings

import pytest
from tqdm import tqdm

from scripts import train
from scripts.cli import aliases, command, terminal
from tests.small_runs import ROOT


def test_the_command_itself_exits_with_two_and_prints_no_traceback(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "scripts.data", "data.sead=3", f"data.root={tmp_path / 'data'}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "did you mean 'data.seed'?" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "data").exists()


def test_an_old_name_of_a_setting_is_accepted_and_said_once(capsys, tmp_path):
    aliases.notice.cache_clear()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mine.yaml").write_text("name: a\nroot: b\nanswers_more_than: 3\n")
    words = [*command.read_words(["data=custom", "data.answers_more_than=3"])]
    (typed,) = train.main.compose(words)
    (written,) = train.main.compose([f"--config-dir={tmp_path}", "data=mine"])
    assert typed.data.min_answer_count == written.data.min_answer_count == 4
    assert written.composed["data"] == {"name": "a", "root": "b", "min_answer_count": 4}
    notice = "notice: data.answers_more_than is now data.min_answer_count, which is 1 more\n"
    assert capsys.readouterr().err == notice
    assert command.read_words(["data.answers_more_than=1,2"]) == ["data.min_answer_count=2,3"]
    with pytest.raises(ValueError, match=r"data.answers_more_than is now data.min_answer_count"):
        command.read_words(["data.answers_more_than=x"])


COMMAND = """
from dataclasses import dataclass

from mcan.runtime.settings import Runtime
from scripts.cli.command import command


@dataclass(frozen=True)
class Mine:
    runtime: Runtime
    steps: int


@command("mine"PLACE)
def main(settings: Mine) -> None:
    print(settings.steps, settings.runtime.precision)


if __name__ == "__main__":
    main()
"""
YAML = "defaults:\n  - /runtime: default\n  - /hydra: quiet\n  - _self_\n\nsteps: 3\n"


@pytest.mark.parametrize("place", ["package", "--config-dir"])
def test_a_command_of_a_users_own_is_a_function_a_class_and_a_yaml(tmp_path, place):
    package = tmp_path / "mine"
    package.mkdir()
    (package / "mine.yaml").write_text(YAML)
    (package / "__init__.py").touch()
    named = ', "pkg://mine"' if place == "package" else ""
    (package / "own.py").write_text(COMMAND.replace("PLACE", named))

    def start(*words):
        words = [*words, *([f"--config-dir={package}"] if place == "--config-dir" else [])]
        return subprocess.run(
            [sys.executable, "-m", "mine.own", *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{tmp_path}"},
            capture_output=True,
            text=True,
        )

    done = start("steps=4", "runtime.precision=float32")
    assert (done.returncode, done.stdout, done.stderr) == (0, "4 float32\n", "")
    done = start("steps=x")
    assert (done.returncode, done.stderr) == (
        2, "error: steps must be a whole number, not 'x'\n",
    )  # fmt: skip


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


def test_a_warning_to_the_user_is_one_line_and_others_say_where(monkeypatch):
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)  # put back at the end
    terminal.shorten_warnings()
    place = (__file__, 1, "some_code()")
    assert warnings.formatwarning("a bad fit", UserWarning, *place) == "warning: a bad fit\n"
    assert "some_code()" in warnings.formatwarning("old", DeprecationWarning, *place)
    with tqdm(total=1, disable=False):
        assert warnings.formatwarning("a bad fit", UserWarning, *place).startswith("\nwarning")
