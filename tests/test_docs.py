"""The pages agree with the code: imports, commands, and the README's example."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_make_help_lists_every_target():
    listed = run("make", "-s", "--no-print-directory", "help")
    names = re.findall(r"^\s*(?:\x1b\[1m)?([a-z-]+)", listed, re.MULTILINE)
    assert sorted(TARGETS) == sorted(names)
