"""--help and Hydra's other flags: the same for every command, and nothing is left behind."""

import logging
import subprocess
import sys

import pytest
import yaml

from scripts import sweep_report
from scripts.cli.flags import list_flags, parse_flags
from scripts.cli.yaml_comments import read_head, read_lines
from scripts.sweep.command_line import expand
from scripts.sweep.plan import Plan
from tests.commands import COMMANDS
from tests.scripts.mistakes import assert_one_sentence
from tests.small_models import run_here
from tests.small_runs import ROOT, finish, start

OF_TRAINING = {"train", "doctor", "submit", "sweep"}


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """An empty working directory; --info leaves its handlers in the root logger.

    Commands that ran before in this process have disabled Hydra's loggers, which --info prints by.
    """
    root = logging.getLogger()
    before = root.level, root.handlers[:]
    for name in logging.root.manager.loggerDict:
        logging.getLogger(name).disabled = False
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    root.level, root.handlers[:] = before


def show(command, *words):
    code, printed, error = run_here(command, *words, quiet=[])
    assert (code, error) == (0, "")
    return printed


def test_the_sweep_and_all_others_are_commands():
    assert OF_TRAINING | {"evaluate", "make_data"} <= set(COMMANDS)
    assert len(COMMANDS) >= 24


def list_dotted(config, prefix=""):
    for key, value in config.items():
        if isinstance(value, dict) and value and key != "rate":
            yield from list_dotted(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_every_setting_with_its_comment_and_the_commands_own_groups(name, empty):
    page = show(COMMANDS[name], "--help")
    # what looks at a training run is for commands of training alone
    looks = ("  runtime.limit_batches=null", "  runtime.profile=0")
    assert [each in page for each in looks] == [name in OF_TRAINING] * 2
    config = yaml.safe_load(show(COMMANDS[name], "--cfg", "job"))
    assert page.startswith(("make ", "scripts."))
    assert f"\n  python -m {COMMANDS[name].run.__module__.removesuffix('.__main__')} [" in page
    lines = [line.strip() for line in page.splitlines() if line.startswith("  ")]
    for key in list_dotted(config):
        (line,) = [line for line in lines if line.startswith(f"{key}=")]
        assert "  " in line, f"{key} has no comment in its YAML"
    chosen = show(COMMANDS[name], "--info", "defaults")
    groups = [block for block in page.split("\n\n") if block.startswith("Groups")]
    for line in groups[0].splitlines()[1:] if groups else []:
        group, choice = line.split()[0].split("=")
        assert f"| {group}/{choice} " in chosen or choice == "null"
    assert list(empty.iterdir()) == []


def test_help_follows_the_choices_of_the_command_line(empty):
    (empty / "own" / "attention").mkdir(parents=True)
    (empty / "own" / "attention" / "mine.yaml").write_text(
        "# Mine.\nname: discrete\nwidth: 3  # of it\n"
    )
    page = show(COMMANDS["train"], "--help", "seed=1,2", "--config-dir=own", "attention=mine")
    assert "attention=mine   discrete | mine | multimodal | own" in page
    assert "  # Mine.\n" in page
    assert "  attention.width=3        of it\n" in page
    assert "\n  seed=1 " in page
    assert "optim.batch_size=16" in show(COMMANDS["sweep"], "optim.batch_size=16,64", "--help")
    assert_one_sentence(COMMANDS["train"], ["--help", "atention=mine"], "'attention'?")


def test_a_setting_that_must_be_given_is_marked_and_shown_settings_may_lack_it(empty):
    assert "\n  checkpoint=…        required: a checkpoint" in show(COMMANDS["evaluate"], "--help")
    assert "\n  checkpoint=… " in show(COMMANDS["evaluate"], "checkpoint=", "--help")  # of make
    assert "checkpoint: ???\n" in show(COMMANDS["evaluate"], "--cfg=job")
    assert_one_sentence(COMMANDS["evaluate"], ["--cfg=job", "splt=a"], "did you mean 'split'?")


def test_flags_may_stand_anywhere_and_a_wrong_one_is_one_sentence(empty):
    arguments = parse_flags(["a=1", "--info", "b=2", "-cd", "own", "c=3"])
    assert list_flags(arguments) == ["--config-dir=own", "--info=all"]
    assert arguments.overrides == ["a=1", "b=2", "c=3"]
    for name in ("train", "sweep"):
        assert_one_sentence(COMMANDS[name], ["seed=1", "--hlep"], "unrecognized arguments: --hlep")


def test_several_jobs_of_one_command_leave_no_folder(empty):
    for name in "ab":
        (empty / name).mkdir()
        Plan(empty / name, expand(["seed=1"]), [0.0], 5, 1).save()
    printed = show(sweep_report.main, "--multirun", "sweep=a,b")
    assert [f"{name}: 0 of 1 runs are done" in printed for name in "ab"] == [True, True]
    assert sorted(path.name for path in empty.iterdir()) == ["a", "b"]


def test_a_reader_that_has_seen_enough_ends_help_quietly():
    command = f"{sys.executable} -m scripts.data --help | %s; echo ${{PIPESTATUS[0]}}"
    both = "; ".join(command % reader for reader in ("head -1", "true"))  # the latter reads nothing
    done = subprocess.run(
        ["bash", "-c", both], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    first = show(COMMANDS["make_data"], "--help").splitlines()[0]
    assert done.stdout.splitlines() == [first, "0", "0"]


def test_several_processes_show_a_page_once(empty):
    code, printed = finish(start(["checkpoint=", "--help"], 2, "scripts.evaluate"))
    assert code == 0
    assert printed == show(COMMANDS["evaluate"], "--help")


def test_comments_are_those_behind_the_value_and_above_the_first_line():
    text = (
        "# @package head\n# One.\n# Two.\na: 'x # y'  # of a\nb:\n  c: [1, 2]  # of c\n  d: 3\n"
        "e: {f: 1}  # of e\ng: ???  # of g\n"
    )
    assert read_head(text) == ["One.", "Two."]
    assert read_lines(text) == {
        "a": ("x # y", "of a"), "b.c": ("", "of c"), "b.d": ("3", ""), "e": ("", "of e"),
        "g": ("???", "of g"),
    }  # fmt: skip
