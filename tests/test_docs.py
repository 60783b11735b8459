"""The imports of every Python snippet in the documentation work."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
IMPORT = re.compile(r"^ *((?:from [\w.]+ )?import [\w.]+(?:, \w+)*)(?: +#.*)?$", re.MULTILINE)
INDENTED = re.compile(r"(?:^(?: {4}.*)?\n)+", re.MULTILINE)
FENCED = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def list_imports(text):
    """The import lines of fenced and of indented code."""
    snippets = FENCED.findall(text) + INDENTED.findall(text)
    return [line for snippet in snippets for line in IMPORT.findall(snippet)]


def test_imports_are_found_in_both_kinds_of_snippets():
    text = "```python\nimport a.b\n```\nfrom there on\n\n    from c import d, e  # f\n\nimport x\n"
    assert list_imports(text) == ["import a.b", "from c import d, e"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_imports_of_a_page_work(page):
    for line in list_imports(page.read_text(encoding="utf-8")):
        exec(line, {})


def test_pages_have_imports():
    assert sum(len(list_imports(page.read_text(encoding="utf-8"))) for page in PAGES) >= 5
