"""A user's mistake on the command line: one sentence, exit code 2, nothing else."""

import os
import signal
import subprocess
import sys

import pytest

from scripts import train
from scripts.cli import aliases, command
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
        (["attention=discrete", "data=vqa_v2", "data.min_answers=3"], "data.min_answer_count'?"),
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


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--multirun", "seed=1,1.5,abc"], "seed must be a whole number >= 0 and < 2^63, not 1.5"),
        (["-m", "optim.epochs=-3,2"], "optim.epochs must be a whole number >= 1, not -3"),
        (["hydra.mode=MULTIRUN", "seed=1,x"], "seed must be a whole number >= 0 and < 2^63, not"),
        (["--config-dir=FOLDER", "seed=x"], "seed must be a whole number"),
        (["--config-dir=/no/where"], "there is no folder /no/where"),
        (["--cfg=job", "resume=5"], "resume must be true or false, not 5"),
        (["--config-name=train", "runtime.precision=foo"], "runtime.precision must be one of auto"),
        (["runtime.mixing=some"], "runtime.mixing must be one of none, leftovers, all, not"),
        (["optim.rate={slope:1}"], "optim.rate of the learning-rate schedule 'paper' needs"),
        (["attention.k_max=0"], "k_max"),
        (["attention.temperature=1"], "has no option 'temperature'; its options are"),
        (["attention=own"], "attention=own needs the name of your head: attention.name=…"),
        (["attention.lam={linear:5}"], "attention.lam must be a number"),
        (["modules=[my_head]", "attention=mine", "--config-dir=FOLDER"], "'strength'"),
        (["tracker=[tensorbored]"], "there is no tracker 'tensorbored'; there are tensorboard"),
    ],
)
def test_every_way_to_start_checks_all_settings_before_anything_is_made(
    monkeypatch, capsys, tmp_path, words, sentence
):
    write_head(tmp_path, "name: mine\nstrength: 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*.yaml"))
    words = [word.replace("FOLDER", str(tmp_path / "own")) for word in words]
    code, error = run(monkeypatch, capsys, *words)
    assert code == 2
    assert sentence in error
    assert error.count("\n") == 1
    assert sorted(tmp_path.rglob("*.yaml")) == before
    assert not (tmp_path / "datasets").exists()
    assert not (tmp_path / "multirun").exists()


def write_head(folder, options):
    """A module with a user-defined head, and its config group own/attention/mine.yaml."""
    (folder / "my_head.py").write_text(
        "import attention\n\n\n"
        "@attention.register('mine')\n"
        "class Mine(attention.build('discrete').__class__):\n"
        "    def __init__(self, temperature: float = 1.0) -> None:\n"
        "        super().__init__()\n"
    )
    (folder / "own" / "attention").mkdir(parents=True)
    (folder / "own" / "attention" / "mine.yaml").write_text(options)


def test_a_config_group_of_a_users_own_is_found_and_checked_by_its_head(monkeypatch, tmp_path):
    write_head(tmp_path, "name: mine\ntemperature: 0.5\n")
    monkeypatch.syspath_prepend(tmp_path)
    words = [f"--config-dir={tmp_path / 'own'}", "modules=[my_head]", "attention=mine"]
    (settings,) = train.main.compose(words)
    assert settings.attention == {"name": "mine", "temperature": 0.5}
    one, two = train.main.compose(["--multirun", *words, "seed=1,2"])
    assert (one.seed, two.seed) == (1, 2)


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
