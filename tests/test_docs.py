"""The pages agree with the code: imports, commands, and the README's example."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import attention
from mcan.head_schedule import ScheduledHead
from tests.small_models import find_command

ROOT = Path(__file__).parents[1]
PAGES = {
    path.name: path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
}
TARGETS = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
IMPORT = re.compile(r"^ *((?:from [\w.]+ )?import [\w.]+(?:, \w+)*)(?: +#.*)?$", re.MULTILINE)
INDENTED = re.compile(r"(?:^(?: {4}.*)?\n)+", re.MULTILINE)
FENCED = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def list_imports(text):
    """The import lines of fenced and of indented code."""
    snippets = FENCED.findall(text) + INDENTED.findall(text)
    return [line for snippet in snippets for line in IMPORT.findall(snippet)]


def list_commands(text):
    """The targets of make that a page names."""
    return set(re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE))


def test_imports_are_found_in_both_kinds_of_snippets():
    text = "```python\nimport a.b\n```\nfrom there on\n\n    from c import d, e  # f\n\nimport x\n"
    assert list_imports(text) == ["import a.b", "from c import d, e"]


@pytest.mark.parametrize("page", PAGES)
def test_the_imports_of_a_page_work_and_its_commands_are_targets(page):
    for line in list_imports(PAGES[page]):
        exec(line, {})
    assert list_commands(PAGES[page]) <= set(TARGETS)


def test_pages_have_imports_and_commands():
    assert sum(len(list_imports(text)) for text in PAGES.values()) >= 5
    assert {"test", "data"} <= list_commands(PAGES["README.md"])
    assert {"doctor", "cost", "train", "export"} <= list_commands(PAGES["cluster.md"])


def run(*command):
    ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_readmes_example_runs_and_finds_both_means():
    (program,) = FENCED.findall(PAGES["README.md"])
    printed = run(sys.executable, "-c", program)
    assert all(found in printed for found in ("K* = 2", "[0.3, 0.2]", "[0.7, 0.8]"))


@pytest.fixture
def own_head(tmp_path, monkeypatch):
    """The page's head and its YAML as files in the working directory; the section's text."""
    section = PAGES["attention.md"].partition("## Your own head\n")[2]
    for name, text in re.findall(r"^```\w+\n# (\S+)\n(.*?)^```", section, re.MULTILINE | re.DOTALL):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return section


def test_the_head_of_the_page_is_trained_with_its_options_and_computes_what_it_says(own_head):
    commands = re.findall(r'^make (\w+) .*?ARGS="(.*)"$', own_head, re.MULTILINE)
    (train, words), (evaluate, others) = [(name, shlex.split(args)) for name, args in commands]
    (schedule,) = re.findall(r"'(attention\.temperature=.*?)'", own_head)
    (settings,) = find_command(train).compose(words)
    assert settings.attention == {"name": "mine", "temperature": 2.0}
    head = attention.build(**settings.attention)
    grid = attention.Grid.of([(2, 3), (2, 2)])
    scores, values = torch.randn(2, 6), torch.randn(2, 6, 5)
    out = head(scores, values, grid)
    for image, num_cells in enumerate((6, 4)):
        weights = torch.softmax(scores[image, :num_cells].double() / 2.0, 0)
        expected = weights.to(values.dtype) @ values[image, :num_cells]
        torch.testing.assert_close(out.context[image], expected)

    (settings,) = find_command(train).compose([*words, schedule])
    scheduled = ScheduledHead(settings.attention, num_epochs=4)
    for epoch, temperature in enumerate((4, 3, 2, 1), start=1):
        scheduled.apply(head, epoch)
        assert head.temperature == temperature

    (settings,) = find_command(evaluate).compose([*others, "checkpoint=runs/shapes-mine-seed1"])
    assert settings.attention["temperature"] == 3


def test_make_help_lists_every_target():
    listed = run("make", "-s", "--no-print-directory", "help")
    names = re.findall(r"^\s*(?:\x1b\[1m)?([a-z-]+)", listed, re.MULTILINE)
    assert sorted(TARGETS) == sorted(names)
